import type { Command } from 'commander'
import { withSharedOptions } from './command.js'
import { commandGroup } from './command-groups.js'
import type { CliContext } from './context.js'
import { withEventFilter } from './event-options.js'
import type { EventsExportOptions } from './export-events.js'

/** `latchkey events export`: stored events as they came, a line of JSON each, oldest first. */
export function eventsExportCommand(program: Command, context: CliContext): void {
  const command = commandGroup(program, 'events').command('export')
  withSharedOptions(
    withEventFilter(command),
    'events export --output events.jsonl',
    'events export --type payment.refunded | gzip > refunds.jsonl.gz',
  )
    .description('write stored events as they came, a line of JSON each, oldest first')
    .option('--output <file>', 'write them to a file that only its owner may read')
    .option('--force', 'replace that file')
    .action(async (options: EventsExportOptions) => {
      const { exportEvents } = await import('./export-events.js')
      await exportEvents(options, context)
    })
}
