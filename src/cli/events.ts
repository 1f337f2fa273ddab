import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { counted } from '../doctor/finding.js'
import { isLatchkeyError, LatchkeyError } from '../errors.js'
import type { EventDetailJson, ExportJson, StoredEventJson } from '../handlers/events.js'
import type { Environment } from '../provider/event.js'
import { refusalText } from '../system-refusal.js'
import type { Api, Page } from './api.js'
import {
  apiCommand,
  checkStretch,
  choice,
  flag,
  isoTime,
  jsonLine,
  LISTED,
  limitTo,
  parseId,
  parseInstant,
  parser,
  type ValuesOf,
  value,
} from './command.js'
import { otherThan } from './context.js'
import { pathOf } from './known.js'
import { createProgress } from './progress.js'
import { detailText, listText } from './text.js'

/** The options that select stored events. */
export const EVENT_FILTER = {
  type: value('<type>', 'only events of this type, such as payment.succeeded for either generation', parseId),
  disposition: choice('<word>', 'only with this disposition', ['applied', 'ignored', 'held', 'quarantined']),
  customer: value('<id>', 'only events that name this customer', parseId),
  endpoint: value('<name>', 'only events that came through this endpoint', parseId),
  from: value('<time>', 'only events first received at or after this time', parseInstant),
  to: value('<time>', 'only events first received before this time', parseInstant),
}
/** A payment and a subscription are events' own, not ways to name a customer. */
export const EVENT_PERSON = { personBy: ['email', 'ref'] } as const
type EventFilter = ValuesOf<typeof EVENT_FILTER>

/** The filter in the form of the API, without the environment. */
export function filterOf({ type, disposition, customer, endpoint, from, to }: EventFilter) {
  return { type, disposition, customerId: customer, endpoint, from: isoTime(from), to: isoTime(to) }
}

const parsePlace = parser('the number shown at the end of an earlier list', (text) =>
  /^\d{1,15}$/.test(text) && Number(text) >= 1 ? Number(text) : null,
)
const parseSha256 = parser('a SHA-256 in lower-case hex', (text) =>
  /^[0-9a-f]{64}$/.test(text) ? text : null,
)

const OUTPUT = { output: value('<file>', 'write them to a new file that only its owner can read') }

export const eventsCommands = [
  apiCommand('events list', {
    kind: 'asks',
    about: 'list stored events, the most recently stored first',
    examples: [
      'events list --disposition held',
      'events list --customer cus_1 --from 2026-01-31T00:00:00Z',
      'events list --payment pay_1',
    ],
    ...EVENT_PERSON,
    options: {
      ...EVENT_FILTER,
      payment: value('<id>', 'only events of this payment', parseId),
      subscription: value('<id>', 'only events of this subscription', parseId),
      conflicts: flag('only events whose id also arrived with another body'),
      before: value('<place>', 'continue where the previous list ended', parsePlace),
      limit: limitTo(20, 1_000),
    },
    check: checkStretch,
    async run({ api, options, context, show }) {
      const { before, limit, payment: paymentId, subscription: subscriptionId, conflicts } = options
      const items: StoredEventJson[] = []
      const query = {
        ...filterOf(options),
        paymentId,
        subscriptionId,
        conflicts,
        environment: api.environment,
      }
      // A cursor of this list holds the number of an event. A page may be short without being the last.
      let cursor = before === undefined ? null : Buffer.from(String(before)).toString('base64url')
      do {
        const few = Math.min(LISTED, limit - items.length)
        const page: Page<StoredEventJson> = await api.get('/events', { ...query, limit: few, cursor })
        items.push(...page.items)
        cursor = page.pagination.nextCursor
      } while (cursor !== null && items.length < limit)
      const next = cursor === null ? null : Number(Buffer.from(cursor, 'base64url').toString())
      show({ items, hasMore: next !== null, next }, listText(items, eventCells, 'no event matches'))
      if (next !== null && !options.json)
        context.err(`note: there are older events: continue with --before ${next}\n`)
    },
  }),
  apiCommand('events show <event>', {
    kind: 'asks',
    about: 'show the content of one stored event, and its effect',
    examples: ['events show evt_1'],
    async run({ api, args: [eventId = ''], show }) {
      const event = await readEvent(api, eventId)
      show(event, (paint) => detailText(event, paint))
    },
  }),
  apiCommand('events body <event>', {
    kind: 'asks',
    about: 'write the exact bytes of one stored event to standard output',
    examples: ['events body evt_1', 'events body evt_1 --output evt_1.body'],
    options: {
      sha256: value(
        '<hex>',
        'the hash of another body with this id (default: the body that counts)',
        parseSha256,
      ),
      ...OUTPUT,
    },
    async run({ api, options, args: [eventId = ''], context }) {
      const { sha256, output } = options
      const event = await readEvent(api, eventId)
      const query = { environment: event.environment, sha256 }
      const bytes = await api.getBytes(pathOf('events', eventId, 'body'), query)
      const { bodyRemoved: rewritten } = event
      // The original, asked for by its hash, is gone: the request has failed.
      if (rewritten !== null && (sha256 === undefined || sha256 === event.bodySha256))
        context.err(`note: the body of ${eventId} is not the original: ${rewritten.why} at ${rewritten.at}\n`)
      if (output !== undefined) {
        const file = await openOutput(resolve(context.folder, output), api)
        try {
          file.write(bytes)
          file.finish()
        } finally {
          file.discard()
        }
      } else if (options.json) {
        const hash = createHash('sha256').update(bytes).digest('hex')
        context.out(jsonLine({ id: eventId, sha256: hash, bodyBase64: bytes.toString('base64') }))
      } else {
        context.out(bytes)
      }
    },
  }),
  apiCommand('events export', {
    kind: 'asks',
    about: 'write the original stored events, one line of JSON each, oldest first',
    examples: [
      'events export --output events.jsonl',
      'events export --type payment.refunded | gzip > refunds.jsonl.gz',
    ],
    ...EVENT_PERSON,
    options: { ...EVENT_FILTER, ...OUTPUT },
    check: checkStretch,
    async run({ api, options, context, show }) {
      const { out, err, folder, isTerminal } = context
      const file = options.output === undefined ? null : resolve(folder, options.output)
      const output = file === null ? null : await openOutput(file, api)
      // On a terminal, the events themselves show the progress.
      const progress = createProgress({ err, isTerminal: isTerminal && file !== null })
      const counts = { delivery: 0, reading: 0, removed: 0, altered: 0 }
      const lines = () => counts.delivery + counts.reading
      try {
        const query = { ...filterOf(options), environment: api.environment }
        let cursor: string | null = null
        do {
          const page: ExportJson = await api.get<ExportJson>('/exports', { ...query, cursor })
          // As bytes: a line is the same wherever it goes.
          for (const line of page.lines) (output?.write ?? out)(Buffer.from(line))
          for (const kind of Object.keys(counts) as (keyof typeof counts)[]) counts[kind] += page.counts[kind]
          const { reached, total } = page.progress
          if (total > 0) progress.show(reached / total, `${lines()} lines written`)
          cursor = page.pagination.nextCursor
        } while (cursor !== null)
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
  }),
]

function eventCells({ receivedAt, id, type, disposition, reason, customerId }: StoredEventJson): string[] {
  const outcome = reason === null ? disposition : `${disposition} (${reason})`
  // The id comes last, since an unreadable event has a long hash as its id.
  return [receivedAt, type ?? 'unreadable', outcome, customerId ?? '-', id]
}

/** @throws {LatchkeyError} `event_not_found`, which says whether the other environment has it */
async function readEvent(api: Api, eventId: string): Promise<EventDetailJson> {
  const { environment } = api
  const read = (asked: Environment | undefined) =>
    api.get<EventDetailJson>(pathOf('events', eventId), { environment: asked })
  return read(environment).catch(async (error: unknown) => {
    if (!isLatchkeyError(error, 'event_not_found') || environment === undefined) throw error
    const other = otherThan(environment)
    const elsewhere = await read(other).catch(() => null)
    const hint = elsewhere === null ? '' : `, but one is in ${other}: add --environment ${other}`
    throw new LatchkeyError('event_not_found', `no event ${eventId} is stored in ${environment}${hint}`)
  })
}

/**
 * Begins a file that must not be there yet.
 * @throws {LatchkeyError} `output_failed`, also while it is written, and if it has appeared meanwhile; `usage` for a
 * name that belongs to the database
 */
async function openOutput(path: string, { config }: Api) {
  const { beginFile } = await import('../config/write-file.js')
  const { assertNotOwnFile } = await import('../store/sqlite/file.js')
  if (config !== null) assertNotOwnFile(config.database.file, path)
  const orFailed = <T>(work: () => T): T => {
    try {
      return work()
    } catch (cause) {
      const isThere = cause instanceof Error && 'code' in cause && cause.code === 'EEXIST'
      const why = isThere ? 'already exists: choose another file' : `can't be written: ${refusalText(cause)}`
      throw new LatchkeyError('output_failed', `${path} ${why}`, { cause })
    }
  }
  const file = orFailed(() => {
    if (existsSync(path)) throw Object.assign(new Error(), { code: 'EEXIST' })
    return beginFile(path)
  })
  return {
    write: (content: Uint8Array) => orFailed(() => file.write(content)),
    finish: () => orFailed(() => file.finish({ replace: false })),
    discard: file.discard,
  }
}

function notesText({ reading, removed, altered }: Record<'reading' | 'removed' | 'altered', number>): string {
  const notes: readonly (readonly [count: number, what: string])[] = [
    [
      reading,
      'exported without a signature, because their bytes were removed: import them with --with-manual',
    ],
    [removed, 'skipped: their bytes were removed, and they were unreadable or the second with their id'],
    [altered, 'skipped: altered in the database since they were received: see latchkey doctor --thorough'],
  ]
  return notes.map(([count, what]) => (count > 0 ? `${counted(count, 'event')} ${what}\n` : '')).join('')
}
