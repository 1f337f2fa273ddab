import type { Command } from 'commander'
import { LatchkeyError } from '../errors.js'
import type { SyncCheckJson } from '../handlers/sync-json.js'
import { jsonLine } from './command.js'
import type { CliContext } from './context.js'
import { throughDaemon } from './daemon-client.js'
import { counted } from './doctor/amounts.js'
import { type Finding, findingLine } from './doctor/finding.js'
import { type SyncOptions, syncCommand } from './sync-options.js'

/** `latchkey sync check`: asks the platforms whether the bots may do what they have to. */
export function syncCheckCommand(program: Command, context: CliContext): void {
  syncCommand(program, 'check', 'check')
    .description('ask the platforms whether the bots may do what they have to, through the running daemon')
    .action(async (options: SyncOptions) => {
      const request = { method: 'GET', path: '/sync/check' } as const
      const check = (await throughDaemon(options, context, request, needDaemon)) as SyncCheckJson
      context.out(options.json ? jsonLine(check) : check.findings.map(toFinding).map(findingLine).join(''))
      const failed = check.findings.filter(({ ok }) => !ok).length
      if (failed > 0) throw new LatchkeyError('checks_failed', `${counted(failed, 'check')} failed`)
    })
}

async function needDaemon(): Promise<never> {
  throw new LatchkeyError('daemon_unreachable', 'no daemon runs: start it, which asks the platforms')
}

function toFinding({ about, ok, message }: SyncCheckJson['findings'][number]): Finding {
  return { level: ok ? 'ok' : 'fail', what: about, detail: message, todo: null }
}
