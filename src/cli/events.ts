import { createHash } from 'node:crypto'
import { resolve } from 'node:path'
import { type Command, InvalidArgumentError } from 'commander'
import { isLatchkeyError, LatchkeyError } from '../errors.js'
import type { EventDetailJson, ExportJson, StoredEventJson } from '../handlers/events.js'
import type { Environment } from '../provider/event.js'
import type { BodyRemovalReason } from '../store/schema.js'
import type { Api, ApiOptions } from './api.js'
import { alignColumns } from './columns.js'
import { apiCommand, pathOf } from './command.js'
import { otherThan } from './context.js'
import {
  checkEventFilter,
  type EventFilterOptions,
  filterOf,
  findEvents,
  knowingEndpoint,
  noteNothingFound,
  withEventFilter,
} from './event-options.js'
import { createProgress } from './follow.js'

const DEFAULT_LIMIT = 20
const MAX_LIMIT = 1_000

interface ListOptions extends EventFilterOptions {
  readonly limit: number
  /** Where the page before said that the list goes on. */
  readonly before?: number
}

/** `latchkey events list`: stored events, newest first. That none is found is an answer too. */
export const eventsListCommand = apiCommand<ListOptions>('events list', {
  about: 'list stored events, the newest first by when they were stored',
  examples: ['events list --disposition held', 'events list --customer cus_1 --from 2026-01-31T00:00:00Z'],
  options: (command) =>
    withEventFilter(command)
      .option('--before <place>', 'go on where the list before has ended', parsePlace)
      .option('--limit <n>', `how many at most, 1 to ${MAX_LIMIT}`, parseLimit, DEFAULT_LIMIT),
  check: checkEventFilter,
  async run({ api, options, context, show }) {
    const { limit, before } = options
    const query = { ...filterOf(options), environment: api.environment }
    const cursor = before === undefined ? null : cursorAt(before)
    const found = await knowingEndpoint(options, findEvents(api, query, { limit, cursor }))
    const { items } = found
    if (items.length === 0) await noteNothingFound(options, api, context)
    const next = found.next === null ? null : placeOf(found.next)
    show({ items, hasMore: next !== null, next }, () =>
      items.length === 0 ? 'no such event is stored\n' : listedText(items),
    )
    if (next !== null && !options.json)
      context.err(`note: there are older ones: go on with --before ${next}\n`)
  },
})

/** A cursor of this list holds the number of an event. */
const cursorAt = (place: number): string => Buffer.from(String(place)).toString('base64url')
const placeOf = (cursor: string): number => Number(Buffer.from(cursor, 'base64url').toString())

function listedText(events: readonly StoredEventJson[]): string {
  const lines = alignColumns(
    events.map(({ receivedAt, id, type, disposition, reason, customerId }) => [
      receivedAt,
      type ?? 'unreadable',
      reason === null ? disposition : `${disposition} (${reason})`,
      customerId ?? '-',
      // Last, since that of an unreadable one is a long hash.
      id,
    ]),
  )
  return `${lines.join('\n')}\n`
}

/** `latchkey events show`: everything that is known of one stored event but its bytes. */
export const eventsShowCommand = apiCommand('events show <event>', {
  about: 'show what one stored event says, and what became of it',
  examples: ['events show evt_1'],
  async run({ api, args: [eventId = ''], show }) {
    const event = await readEvent(api, eventId)
    show(event, () => eventText(event))
  },
})

/** @throws {LatchkeyError} `event_not_found`, which says so if the other environment has it */
async function readEvent(api: Api, eventId: string): Promise<EventDetailJson> {
  const { environment } = api
  const read = (asked: Environment | undefined) =>
    api.get<EventDetailJson>(pathOf('events', eventId), { environment: asked })
  return read(environment).catch(async (error: unknown) => {
    if (!isLatchkeyError(error, 'event_not_found') || environment === undefined) throw error
    const other = otherThan(environment)
    const isElsewhere = await read(other).then(
      () => true,
      () => false,
    )
    const hint = isElsewhere ? `, but one is in ${other}: add --environment ${other}` : ''
    throw new LatchkeyError('event_not_found', `no event ${eventId} is stored in ${environment}${hint}`)
  })
}

interface OutputOptions {
  readonly output?: string
  readonly force?: true
}

const withOutput = (command: Command) =>
  command
    .option('--output <file>', 'write them to a file that only its owner may read')
    .option('--force', 'replace that file')

interface BodyOptions extends ApiOptions, OutputOptions {
  readonly sha256?: string
}

/** `latchkey events body`: the bytes of one stored event exactly as they were sent and signed. */
export const eventsBodyCommand = apiCommand<BodyOptions>('events body <event>', {
  about: 'write the exact bytes of one stored event to standard output',
  examples: ['events body evt_1', 'events body evt_1 --output evt_1.body'],
  options: (command) =>
    withOutput(
      command.option(
        '--sha256 <hex>',
        'another body under this id (default: the one that counts)',
        parseSha256,
      ),
    ),
  async run({ api, options, args: [eventId = ''], context }) {
    const { sha256, output, force } = options
    const event = await readEvent(api, eventId)
    const removed = removalOf(event, sha256)
    const query = { environment: event.environment, sha256 }
    const bytes = await api.getBytes(pathOf('events', eventId, 'body'), query).catch((error: unknown) => {
      if (isLatchkeyError(error, 'event_not_found')) {
        const message = `the event ${eventId} has no body with the SHA-256 ${sha256}`
        throw new LatchkeyError('event_not_found', message)
      }
      if (isLatchkeyError(error, 'body_removed') && removed !== null)
        throw new LatchkeyError('body_removed', `the body of ${eventId}${removalText(removed, ' ')}`)
      throw error
    })
    if (removed !== null) context.err(`the body of ${eventId}${removalText(removed, ' ')}\n`)
    if (output !== undefined) {
      const { openOutputFile } = await import('./output-file.js')
      const file = openOutputFile(resolve(context.folder, output), { replace: !!force, config: api.config })
      try {
        file.write(bytes)
        file.finish()
      } finally {
        file.discard()
      }
    } else if (options.json) {
      const hash = createHash('sha256').update(bytes).digest('hex')
      context.out(`${JSON.stringify({ id: eventId, sha256: hash, bodyBase64: bytes.toString('base64') })}\n`)
    } else {
      context.out(bytes)
    }
  },
})

function removalOf({ bodyRemoved, otherBodies: others }: EventDetailJson, sha256: string | undefined) {
  if (sha256 === undefined || sha256 === bodyRemoved?.sha256) return bodyRemoved
  return others.find((other) => other.sha256 === sha256)?.removed ?? null
}

interface ExportOptions extends EventFilterOptions, OutputOptions {}

/** `latchkey events export`: stored events as they came, a line of JSON each, oldest first. */
export const eventsExportCommand = apiCommand<ExportOptions>('events export', {
  about: 'write stored events as they came, a line of JSON each, oldest first',
  examples: [
    'events export --output events.jsonl',
    'events export --type payment.refunded | gzip > refunds.jsonl.gz',
  ],
  options: (command) => withOutput(withEventFilter(command)),
  check: checkEventFilter,
  async run({ api, options, context, show }) {
    const { out, err, folder, isTerminal } = context
    const file = options.output === undefined ? null : resolve(folder, options.output)
    const output =
      file === null
        ? null
        : (await import('./output-file.js')).openOutputFile(file, {
            replace: !!options.force,
            config: api.config,
          })
    // On standard output a person looks at the events themselves.
    const progress = createProgress({ ...context, isTerminal: isTerminal && file !== null })
    const counts = { delivery: 0, reading: 0, removed: 0, altered: 0 }
    const lines = () => counts.delivery + counts.reading
    try {
      const query = { ...filterOf(options), environment: api.environment }
      let cursor: string | null = null
      do {
        const page: ExportJson = await knowingEndpoint(
          options,
          api.get<ExportJson>('/exports', { ...query, cursor }),
        )
        for (const line of page.lines) (output?.write ?? out)(line)
        for (const kind of Object.keys(counts) as (keyof typeof counts)[]) counts[kind] += page.counts[kind]
        const { reached, total } = page.progress
        if (total > 0)
          progress.show(`${lines()} written, ${Math.floor((100 * reached) / total)} % of the store read`)
        cursor = page.pagination.nextCursor
      } while (cursor !== null)
      if (Object.values(counts).every((count) => count === 0)) await noteNothingFound(options, api, context)
      output?.finish()
    } finally {
      progress.clear()
      output?.discard()
    }
    const { reading: readings, removed, altered } = counts
    if (!options.json || file === null) err(notesText(counts))
    if (file === null) return
    show({ file, lines: lines(), readings, leftOut: removed + altered, altered }, () =>
      lines() === 1 ? `wrote one line to ${file}\n` : `wrote ${lines()} lines to ${file}\n`,
    )
  },
})

function notesText({ reading, removed, altered }: Record<'reading' | 'removed' | 'altered', number>): string {
  const [events, bytes] = reading === 1 ? ['one event', 'its bytes'] : [`${reading} events`, 'their bytes']
  const unsigned =
    `without a signature: ${events} as read, since ${bytes} are not there any more as signed: ` +
    'an import takes that with --with-manual alone\n'
  const gone = 'not there any more, and could not be read, or came second under its id'
  const changed = 'not what came any more, but altered in the database: see latchkey doctor --thorough'
  return (reading === 0 ? '' : unsigned) + leftOutText(removed, gone) + leftOutText(altered, changed)
}

function leftOutText(count: number, why: string): string {
  if (count === 0) return ''
  return `left out: ${count === 1 ? 'one body is' : `${count} bodies are`} ${why}\n`
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

/** A sender's text may hold some, and a terminal would obey them. */
const CONTROL_CHARACTER = /[^\P{Cc}\n]/gu

/** A stored event for a person to read: what became of it, where it belongs, what it says, and how it came. */
function eventText(event: EventDetailJson): string {
  const { id, type, disposition, reasonText, headers } = event
  const sections = [
    `${type ?? 'unreadable'} ${id}: ${reasonText === null ? disposition : `${disposition}, ${reasonText}`}\n`,
    indented(alignColumns(factsOf(event))),
    listText('It says', alignColumns(rowsIn(event))),
    listText(
      'Signed headers',
      headers === null
        ? ['none: it was done by hand']
        : alignColumns([
            ['event', headers.event ?? 'not sent'],
            ['timestamp', headers.timestamp],
            ['signature', headers.signature],
          ]),
    ),
    listText('Other bodies under this id, which changed nothing', alignColumns(otherBodies(event))),
  ]
  const text = sections.filter((section) => section !== '').join('\n')
  return text.replaceAll(CONTROL_CHARACTER, '\ufffd')
}

function factsOf(event: EventDetailJson): string[][] {
  const { source, deliveries, conflicts, bodySha256, bodyRemoved: original } = event
  const again = deliveries === 1 ? 'once' : `${deliveries} times, last ${event.lastReceivedAt}`
  // Shown only if something else is in its place now.
  const isRewritten = original !== null && original.sha256 !== bodySha256
  return [
    ['environment', event.environment],
    ['endpoint', event.endpoint],
    ['happened', event.createdAt ?? 'unknown'],
    ['received', `${event.receivedAt}, ${again}`],
    ['customer', event.customerId ?? 'none named'],
    ['belongs to', source === null ? 'nothing' : `${source.kind} ${source.id}`],
    ['generation', event.generation ?? 'neither'],
    ['normaliser', String(event.normalizerVersion)],
    ['body', `${event.bodyBytes} bytes, sha256 ${bodySha256}${removalText(original)}`],
    ...(isRewritten ? [['as it came', `${original.bytes} bytes, sha256 ${original.sha256}`]] : []),
    ...(conflicts === 0 ? [] : [['conflicts', String(conflicts)]]),
  ]
}

/** What the event says, but for what is shown above. */
function rowsIn({ normalized }: EventDetailJson): string[][] {
  if (normalized === null) return []
  const { id: _id, generation: _generation, createdAt: _at, customerId: _customer, ...others } = normalized
  return rowsOf(others)
}

/** `railProof.rail`, `card`. */
function rowsOf(fields: object, path = ''): string[][] {
  return Object.entries(fields).flatMap(([name, value]) => {
    if (value === null) return []
    return typeof value === 'object' ? rowsOf(value, `${path}${name}.`) : [[`${path}${name}`, String(value)]]
  })
}

function otherBodies({ otherBodies: others }: EventDetailJson): string[][] {
  return others.map(({ sha256, bytes, endpoint, receivedAt, deliveries, removed }) => [
    sha256,
    `${bytes} bytes`,
    endpoint,
    receivedAt,
    `${deliveries === 1 ? 'once' : `${deliveries} times`}${removalText(removed)}`,
  ])
}

/** What became of the bytes of an event. */
const BODY_REMOVAL_TEXT: Readonly<Record<BodyRemovalReason, string>> = {
  expired: 'was removed, being older than bodies are kept',
  erased: 'was removed with the erasure of a customer',
  redacted: 'was rewritten without what it told of a customer who was erased',
}

function removalText(
  removed: { readonly why: BodyRemovalReason; readonly at: string } | null,
  joint = ', which ',
): string {
  return removed === null ? '' : `${joint}${BODY_REMOVAL_TEXT[removed.why]}, at ${removed.at}`
}

function listText(title: string, lines: readonly string[]): string {
  return lines.length === 0 ? '' : `${title}\n${indented(lines)}`
}

function indented(lines: readonly string[]): string {
  return lines.map((line) => `  ${line}\n`).join('')
}
