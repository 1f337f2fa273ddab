import type { Command } from 'commander'
import type { SyncPlanJson } from '../handlers/sync-json.js'
import { alignColumns } from './columns.js'
import { jsonLine } from './command.js'
import type { CliContext } from './context.js'
import { throughDaemon } from './daemon-client.js'
import { counted } from './doctor/amounts.js'
import { queryText, type SyncOptions, syncCommand, withEnvironment } from './sync-options.js'

const SAMPLE_SIZE = 20

interface PlanOptions extends SyncOptions {
  readonly all?: true
}

/** `latchkey sync plan`: the calls that are to be made; makes none. */
export function syncPlanCommand(program: Command, context: CliContext): void {
  withEnvironment(syncCommand(program, 'plan', 'plan', 'plan --all --json'))
    .description('show the calls that are to be made to the platforms; makes none')
    .option('--all', `show all of them (default: the first ${SAMPLE_SIZE})`)
    .action(async (options: PlanOptions) => {
      const plan = await readPlan(options, context)
      const calls = options.all ? plan.calls : plan.calls.slice(0, SAMPLE_SIZE)
      context.out(options.json ? jsonLine({ ...plan, calls }) : planText(plan, calls))
      const left = plan.calls.length - calls.length
      if (left > 0) context.err(`note: there are ${left} more: see --all\n`)
    })
}

async function readPlan(options: SyncOptions, context: CliContext): Promise<SyncPlanJson> {
  const { environment } = options
  const request = { method: 'GET', path: `/sync/plan${queryText({ environment })}` } as const
  const plan = await throughDaemon(options, context, request, async (config) => {
    const { readSyncPlan } = await import('./read-sync.js')
    return readSyncPlan(config, context, environment)
  })
  return plan as SyncPlanJson
}

function planText({ paused, hash, calls }: SyncPlanJson, shown: SyncPlanJson['calls']): string {
  if (calls.length === 0) return 'there is nothing to do\n'
  const given = calls.filter(({ action }) => action === 'give').length
  const waiting = calls.filter(({ needsConfirmation }) => needsConfirmation).length
  const rows = shown.map(({ action, environment, target, accountId, customerId, needsConfirmation }) => [
    action,
    environment,
    target,
    accountId,
    customerId,
    needsConfirmation ? 'waits for --confirm' : '',
  ])
  const lines = [
    ...alignColumns(rows),
    `${given} to give, ${calls.length - given} to take${paused ? '; sync is paused' : ''}`,
    ...(hash === null
      ? []
      : [
          `beyond the bound: ${counted(waiting, 'removal')}; if that is right, \`latchkey sync run --confirm ${hash}\``,
        ]),
  ]
  return `${lines.join('\n')}\n`
}
