import { type Command, InvalidArgumentError } from 'commander'
import type { EventPage, StoredEvent } from '../entitlements/stored-event.js'
import { storedEventJson } from '../handlers/event-json.js'
import { alignColumns } from './columns.js'
import { jsonLine, loadNamedConfig, type SharedOptions, withSharedOptions } from './command.js'
import { commandGroup } from './command-groups.js'
import type { CliContext } from './context.js'
import { type EventFilterOptions, eventFilterOf, withEventFilter } from './event-options.js'

const DEFAULT_LIMIT = 20
const MAX_LIMIT = 1_000

interface EventsListOptions extends SharedOptions, EventFilterOptions {
  readonly limit: number
  /** Where the page before has said that it goes on. */
  readonly before?: number
}

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
    .action(async (options: EventsListOptions) => {
      const { readEventPage } = await import('./read-events.js')
      const { config } = await loadNamedConfig(options, context)
      const filter = eventFilterOf(options, config)
      const page = await readEventPage(config, {
        filter,
        before: options.before ?? null,
        limit: options.limit,
      })
      if (page.items.length === 0) {
        const { explainNothingFound } = await import('./nothing-found.js')
        await explainNothingFound(filter, config, context)
      }
      show(page, options, context)
    })
}

function show({ items, next }: EventPage, { json }: EventsListOptions, { out, err }: CliContext): void {
  if (json) {
    out(jsonLine({ items: items.map(storedEventJson), hasMore: next !== null, next }))
    return
  }
  out(items.length === 0 ? 'no such event is stored\n' : listText(items))
  if (next !== null) err(`note: there are older ones: go on with --before ${next}\n`)
}

function listText(events: readonly StoredEvent[]): string {
  const lines = alignColumns(
    events.map(({ receivedAt, id, type, disposition, reason, customerId }) => [
      new Date(receivedAt).toISOString(),
      type ?? 'unreadable',
      reason === null ? disposition : `${disposition} (${reason})`,
      customerId ?? '-',
      // Last, since that of an unreadable one is a long hash.
      id,
    ]),
  )
  return `${lines.join('\n')}\n`
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
