import type { Command } from 'commander'
import type { ReplaySummaryJson } from '../handlers/replay-json.js'
import { jsonLine, withDaemonOption, withSharedOptions } from './command.js'
import type { CliContext } from './context.js'
import { differenceText } from './difference-text.js'
import { withEventFilter } from './event-options.js'
import type { ReplayOptions } from './recompute-here.js'

/** `latchkey replay`: reads stored events again with the program of today. */
export function replayCommand(program: Command, context: CliContext): void {
  withEventFilter(
    withDaemonOption(
      withSharedOptions(
        program.command('replay'),
        'replay --disposition quarantined',
        'replay --from 2026-01-31T00:00:00Z --dry-run',
      ),
    ),
  )
    .description('read stored events again, and fold what they touch')
    .option('--dry-run', 'say what would change, and change nothing')
    .action(async (options: ReplayOptions) => {
      const { runReplay } = await import('./run-replay.js')
      const summary = await runReplay(options, context)
      context.out(options.json ? jsonLine(summary) : replayText(summary, !!options.dryRun))
    })
}

function replayText(summary: ReplaySummaryJson, conditional: boolean): string {
  const { read, changed, recovered, quarantined, duplicates, skipped, notReplayable, altered } = summary
  const lines = [
    `${read} read again, ${changed} ${conditional ? 'would say' : 'said'} something else`,
    ...(recovered > 0 ? [`${recovered} could not be used before`] : []),
    ...(quarantined > 0 ? [`${quarantined} can not be used`] : []),
    ...(duplicates > 0 ? [`${duplicates} left alone: another event has their id`] : []),
    ...(skipped > 0 ? [`${skipped} left alone: their endpoint is for another environment now`] : []),
    ...(notReplayable > 0 ? [`${notReplayable} taken as they stand: their bodies were removed`] : []),
    ...(altered > 0
      ? [
          `${altered} taken as they stand: their bodies were altered in the database (latchkey doctor --thorough)`,
        ]
      : []),
  ]
  return `${lines.join('\n')}\n${differenceText(summary, { conditional })}${callsText(summary)}`
}

/** What roles and groups would have to follow, where that is told. */
function callsText({ calls }: ReplaySummaryJson): string {
  if (calls === null) return ''
  const { gives, takes, sample } = calls
  if (gives + takes === 0) return 'no role or group would follow\n'
  const lines = sample.map(
    ({ environment, action, target, accountId, customerId }) =>
      `${environment}  ${action}  ${target}  ${accountId}  (${customerId})\n`,
  )
  const more = gives + takes - sample.length
  const rest = more > 0 ? [`and ${more} more\n`] : []
  return [`${gives} would be given a role or group, ${takes} would lose one\n`, ...lines, ...rest].join('')
}
