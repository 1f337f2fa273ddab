import { type Command, InvalidArgumentError } from 'commander'
import { environmentOption, parseId, withSharedOptions } from './command.js'
import { commandGroup } from './command-groups.js'
import type { CliContext } from './context.js'
import { withEventFilter } from './event-options.js'
import type { BodyOptions, ExportOptions, ListOptions, ShowOptions } from './run-events.js'

const DEFAULT_LIMIT = 20
const MAX_LIMIT = 1_000

/** `latchkey events list`: stored events, newest first. That none is found is an answer too. */
export function eventsListCommand(program: Command, context: CliContext): void {
  const command = commandGroup(program, 'events').command('list')
  withSharedOptions(
    withEventFilter(command),
    'events list --disposition held',
    'events list --customer cus_1 --from 2026-01-31T00:00:00Z',
  )
    .description('list stored events, the newest first by when they were stored')
    .option('--before <place>', 'go on where the list before has ended', parsePlace)
    .option('--limit <n>', `how many at most, 1 to ${MAX_LIMIT}`, parseLimit, DEFAULT_LIMIT)
    .action(async (options: ListOptions) => (await import('./run-events.js')).listEvents(options, context))
}

/** `latchkey events show`: everything that is known of one stored event but its bytes. */
export function eventsShowCommand(program: Command, context: CliContext): void {
  const command = commandGroup(program, 'events').command('show')
  withSharedOptions(command, 'events show evt_1')
    .description('show what one stored event says, and what became of it')
    .argument('<event>', 'the event id', parseId)
    .addOption(environmentOption())
    .action(async (eventId: string, options: ShowOptions) =>
      (await import('./run-events.js')).showEvent(eventId, options, context),
    )
}

/** `latchkey events body`: the bytes of one stored event exactly as they were sent and signed. */
export function eventsBodyCommand(program: Command, context: CliContext): void {
  const command = commandGroup(program, 'events').command('body')
  withSharedOptions(command, 'events body evt_1', 'events body evt_1 --output evt_1.body')
    .description('write the exact bytes of one stored event to standard output')
    .argument('<event>', 'the event id', parseId)
    .option('--sha256 <hex>', 'another body under this id (default: the one that stands)', parseSha256)
    .option('--output <file>', 'write them to a file that only its owner may read')
    .option('--force', 'replace that file')
    .addOption(environmentOption())
    .action(async (eventId: string, options: BodyOptions) =>
      (await import('./run-events.js')).writeBody(eventId, options, context),
    )
}

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
    .action(async (options: ExportOptions) =>
      (await import('./run-events.js')).exportEvents(options, context),
    )
}

function parseLimit(text: string): number {
  const limit = /^\d{1,4}$/.test(text) ? Number(text) : 0
  if (limit >= 1 && limit <= MAX_LIMIT) return limit
  throw new InvalidArgumentError(`It must be 1 to ${MAX_LIMIT}.`)
}

function parsePlace(text: string): number {
  const place = /^\d{1,15}$/.test(text) ? Number(text) : 0
  if (place >= 1) return place
  throw new InvalidArgumentError('It must be a place that a list before has told.')
}

function parseSha256(text: string): string {
  if (/^[0-9a-f]{64}$/.test(text)) return text
  throw new InvalidArgumentError('It is not a SHA-256 in lower-case hex.')
}
