import { resolve } from 'node:path'
import { BODY_REMOVAL_TEXT, type BodyRemoval, type EventQuery } from '../entitlements/stored-event.js'
import { LatchkeyError } from '../errors.js'
import { eventDetailJson, type StoredEventJson, storedEventJson } from '../handlers/event-json.js'
import { exportEvents as exportedEvents } from '../history/export.js'
import type { Environment } from '../provider/event.js'
import { readEvent, readEventBody, readEventPage } from '../store/event-questions.js'
import { alignColumns } from './columns.js'
import { defaultEnvironment, jsonLine, loadNamedConfig, otherThan, type SharedOptions } from './command.js'
import type { CliContext } from './context.js'
import { type EventFilterOptions, eventFilterOf } from './event-options.js'
import { eventText } from './event-text.js'
import { explainNothingFound } from './nothing-found.js'
import { openOutputFile } from './output-file.js'
import { readStore } from './read-store.js'

export interface ListOptions extends SharedOptions, EventFilterOptions {
  readonly limit: number
  /** Where the page before said that the list goes on. */
  readonly before?: number
}

export async function listEvents(options: ListOptions, context: CliContext): Promise<void> {
  const { config } = await loadNamedConfig(options, context)
  const filter = eventFilterOf(options, config)
  const { limit, before = null } = options
  // However many have to be looked at: this process does nothing else.
  const { items: found, next } = await readStore(config, (db) =>
    readEventPage(db, { filter, before, limit }, Number.POSITIVE_INFINITY),
  )
  if (found.length === 0) await explainNothingFound(filter, config, context)
  const items = found.map(storedEventJson)
  if (options.json) {
    context.out(jsonLine({ items, hasMore: next !== null, next }))
    return
  }
  context.out(items.length === 0 ? 'no such event is stored\n' : listText(items))
  if (next !== null) context.err(`note: there are older ones: go on with --before ${next}\n`)
}

function listText(events: readonly StoredEventJson[]): string {
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

export interface ShowOptions extends SharedOptions {
  readonly environment?: Environment
}

export async function showEvent(eventId: string, options: ShowOptions, context: CliContext): Promise<void> {
  const { config } = await loadNamedConfig(options, context)
  const environment = options.environment ?? defaultEnvironment(config.endpoints)
  const event = await readStore(config, async (db) => {
    const read = (query: EventQuery) => readEvent(db, query)
    const found = await read({ environment, eventId })
    if (found === null) throw await noSuchEvent(read, { environment, eventId })
    return eventDetailJson(found)
  })
  context.out(options.json ? jsonLine(event) : eventText(event))
}

/** Says so if the other environment has one. */
async function noSuchEvent(
  read: (query: EventQuery) => Promise<unknown>,
  { environment, eventId }: EventQuery,
): Promise<LatchkeyError> {
  const other = otherThan(environment)
  const isElsewhere = (await read({ environment: other, eventId })) !== null
  const hint = isElsewhere ? `, but one is in ${other}: add --environment ${other}` : ''
  return new LatchkeyError('event_not_found', `no event ${eventId} is stored in ${environment}${hint}`)
}

export interface BodyOptions extends ShowOptions {
  readonly sha256?: string
  readonly output?: string
  readonly force?: true
}

export async function writeBody(eventId: string, options: BodyOptions, context: CliContext): Promise<void> {
  const { config } = await loadNamedConfig(options, context)
  const { environment = defaultEnvironment(config.endpoints), sha256 = null } = options
  const body = await readStore(config, async (db) => {
    const found = await readEventBody(db, { environment, eventId, sha256 })
    if (found !== null) return found
    const read = (query: EventQuery) => readEvent(db, query)
    const isStored = sha256 !== null && (await read({ environment, eventId })) !== null
    if (!isStored) throw await noSuchEvent(read, { environment, eventId })
    throw new LatchkeyError('event_not_found', `the event ${eventId} has no body with the SHA-256 ${sha256}`)
  })
  const { bytes, removed } = body
  const text = removed === null ? `the body of ${eventId} is gone` : removalText(eventId, removed)
  if (bytes === null) throw new LatchkeyError('body_removed', text)
  if (removed !== null) context.err(`${text}\n`)
  if (options.output !== undefined) {
    const file = resolve(context.folder, options.output)
    const output = openOutputFile(file, { replace: options.force === true, config })
    try {
      output.write(bytes)
      output.finish()
    } finally {
      output.discard()
    }
  } else if (options.json) {
    context.out(jsonLine({ id: eventId, sha256: body.sha256, bodyBase64: bytes.toString('base64') }))
  } else {
    context.out(bytes)
  }
}

function removalText(eventId: string, { why, at }: BodyRemoval): string {
  return `the body of ${eventId} ${BODY_REMOVAL_TEXT[why]}, at ${new Date(at).toISOString()}`
}

export interface ExportOptions extends SharedOptions, EventFilterOptions {
  readonly output?: string
  readonly force?: true
}

/** Writes the events, and then says how many, how many of them without a signature, and what is left out. */
export async function exportEvents(options: ExportOptions, context: CliContext): Promise<void> {
  const { out, err } = context
  const { config } = await loadNamedConfig(options, context)
  const filter = eventFilterOf(options, config)
  const file = options.output === undefined ? null : resolve(context.folder, options.output)
  const output = file === null ? null : openOutputFile(file, { replace: options.force === true, config })
  // On standard output a person looks at the events themselves.
  const isProgressShown = file !== null && context.isTerminal
  const counts = { delivery: 0, reading: 0, removed: 0, altered: 0 }
  const lines = () => counts.delivery + counts.reading
  const onProgress = (reached: number, newest: number) => {
    const share = Math.floor((100 * reached) / newest)
    if (isProgressShown) err(`\r${lines()} written, ${share} % of the store read`)
  }
  try {
    await readStore(config, async (db) => {
      for await (const exported of exportedEvents(db, filter, onProgress)) {
        counts[exported.kind] += 1
        if ('line' in exported) (output?.write ?? out)(exported.line)
      }
    })
    if (Object.values(counts).every((count) => count === 0))
      await explainNothingFound(filter, config, context)
    output?.finish()
  } finally {
    if (isProgressShown) err('\r\u001b[K')
    output?.discard()
  }
  const { reading: readings, removed, altered } = counts
  if (!options.json || file === null) err(notesText(counts))
  if (file === null) return
  out(
    options.json
      ? jsonLine({ file, lines: lines(), readings, leftOut: removed + altered, altered })
      : `wrote ${lines() === 1 ? 'one line' : `${lines()} lines`} to ${file}\n`,
  )
}

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
