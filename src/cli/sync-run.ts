import { type Command, Option } from 'commander'
import { LatchkeyError } from '../errors.js'
import type { SyncRunJson } from '../handlers/sync-json.js'
import { environmentOption, jsonLine, parseId } from './command.js'
import type { CliContext } from './context.js'
import { throughDaemon } from './daemon-client.js'
import { counted } from './doctor/amounts.js'
import { type SyncOptions, syncCommand } from './sync-options.js'

interface RunOptions extends SyncOptions {
  readonly confirm?: string
  readonly sweep?: true
  readonly retry?: true
  readonly target?: string
  readonly customer?: string
  readonly reason?: string
}

/** `latchkey sync run`: has the daemon work off what is due, now. */
export function syncRunCommand(program: Command, context: CliContext): void {
  syncCommand(
    program,
    'run',
    'run',
    'run --retry --target discord:1:2 --reason member_not_in_guild',
    'run --confirm 5f0c…',
  )
    .description('have the running daemon do now what is due, and try stopped platforms again')
    .addOption(
      new Option('--confirm <hash>', 'make the removals beyond the bound of this plan').argParser(parseId),
    )
    .option('--sweep', 'compare with the platforms’ real members first')
    .option('--retry', 'also try again what waits, is parked or has failed; with these, only that:')
    .option('--target <target>', 'of a role or group, such as discord:1:2, or webhook', parseId)
    .option('--customer <id>', 'of a customer', parseId)
    .option('--reason <code>', 'that is parked for this', parseId)
    .addOption(environmentOption('of this environment (default: both)'))
    .action(async (options: RunOptions) => {
      const request = { method: 'POST', path: '/sync/run', body: bodyOf(options) } as const
      const run = (await throughDaemon(options, context, request, needDaemon)) as SyncRunJson
      context.out(options.json ? jsonLine(run) : runText(run, options.confirm !== undefined))
      if (run.stopped) throw new LatchkeyError('checks_failed', 'somebody has to act, and then run it again')
    })
}

function bodyOf({ confirm, sweep, retry, target, customer, reason, environment }: RunOptions) {
  const filter = { target, customerId: customer, code: reason, environment }
  if (!retry && Object.values(filter).some((value) => value !== undefined)) {
    throw new LatchkeyError(
      'usage',
      '--target, --customer, --reason and --environment choose what to --retry',
    )
  }
  return { confirm, sweep, ...(retry && { retry: filter }) }
}

/** What a platform limits and what it has answered, a daemon alone keeps in mind; it works off what is due by itself. */
async function needDaemon(): Promise<never> {
  throw new LatchkeyError('daemon_unreachable', 'no daemon runs: start it, which does what is due by itself')
}

function runText(run: SyncRunJson, isConfirmed: boolean): string {
  if (run.left === undefined) return 'it takes longer and goes on: see `latchkey sync status`\n'
  const { paused, given, taken, unchanged, failed, waiting, parked, unconfirmed, stopped, left, messages } =
    run
  const lines = [
    paused
      ? `sync is paused: no call was made${isConfirmed ? '; what was confirmed is done after `latchkey sync resume`' : ''}`
      : `${given} given, ${taken} taken, ${unchanged} were so already`,
    ...(failed > 0 ? [`${failed} failed: to be tried again by itself`] : []),
    ...(waiting > 0
      ? [`${waiting} wait for the customer: see \`latchkey sync status --state waiting\``]
      : []),
    ...(parked > 0 ? [`${parked} wait for somebody: see \`latchkey sync status --state parked\``] : []),
    ...(unconfirmed > 0
      ? [`${counted(unconfirmed, 'removal')} beyond the bound: see \`latchkey sync plan\``]
      : []),
    ...(stopped > 0
      ? [`${counted(stopped, 'call')} stopped until somebody acts: see \`latchkey sync status\``]
      : []),
    ...(left > 0 ? [`${counted(left, 'call')} still to be made: it goes on by itself`] : []),
    ...(messages > 0 ? [`${counted(messages, 'message')} of the outbound webhook tried again`] : []),
  ]
  return `${lines.join('\n')}\n`
}
