/* Stored events: lists, details, exact bytes, and lines to export and import. */

import { z } from 'zod'
import { type Issue, LatchkeyError } from '../errors.js'
import { type ExportPlace, readExportPage } from '../history/export.js'
import type { ImportRules, LineOutcome } from '../history/import.js'
import { BACKFILL_ENDPOINT, MANUAL_ENDPOINT } from '../provider/endpoint.js'
import { type NormalizedEvent, QUARANTINE_REASONS } from '../provider/event.js'
import {
  CANONICAL_TYPE_OF_V2,
  CUSTOMER_EVENT_TYPES,
  INFORMATIVE_EVENT_TYPES,
  MANUAL_EVENT_TYPES,
  PAYMENT_EVENT_TYPES,
  PAYMENT_REPORTED,
  SUBSCRIPTION_EVENT_TYPES,
  SUBSCRIPTION_REPORTED,
} from '../provider/event-types.js'
import { readEvent, readEventBody, readEventPage } from '../store/event-questions.js'
import type { EventFilter } from '../store/event-walk.js'
import { counts, environment, holdReason, instant, iso, isoOrNull, sourceKey } from './answers.js'
import { MAX_IMPORT_LINES } from './body.js'
import {
  flagParameter,
  idParameter,
  instantParameter,
  invalidParameter,
  limitParameter,
  nearestName,
  pageOf,
  paginated,
  placeIn,
} from './query.js'
import { type MountDeps, type Route, route } from './route.js'

export interface ImportDeps {
  /** The result for each line, in order; a dry run stores nothing. */
  readonly importLines: (
    lines: readonly string[],
    rules: ImportRules & { readonly dryRun: boolean },
  ) => Promise<readonly LineOutcome[]>
}

const removal = z.object({ why: z.enum(['expired', 'erased', 'redacted']), at: instant })

export const storedEvent = z.object({
  id: z.string(),
  environment,
  endpoint: z.string(),
  generation: z.enum(['v2', 'v3']).nullable(),
  type: z.string().nullable(),
  disposition: z.enum(['applied', 'ignored', 'held', 'quarantined']),
  reason: z.enum([...holdReason.options, ...QUARANTINE_REASONS]).nullable(),
  createdAt: instant.nullable(),
  receivedAt: instant,
  lastReceivedAt: instant,
  deliveries: z.int(),
  customerId: z.string().nullable(),
  source: sourceKey.nullable(),
  conflicts: z.int(),
  normalizerVersion: z.int(),
  bodySha256: z.string(),
  bodyBytes: z.int(),
  bodyRemoved: removal.extend({ sha256: z.string(), bytes: z.int() }).nullable(),
})
export type StoredEventJson = z.input<typeof storedEvent>

/** The content of an event, in the same terms for every endpoint; each kind has fields of its own. */
const normalizedEvent = z.codec(
  z.looseObject({ id: z.string(), subject: z.string(), type: z.string() }),
  z.custom<NormalizedEvent>(),
  {
    decode: (json) => json as unknown as NormalizedEvent,
    encode: (event) => ({
      ...event,
      createdAt: iso(event.createdAt),
      ...('expiresAt' in event ? { expiresAt: isoOrNull(event.expiresAt) } : {}),
      ...('until' in event ? { until: isoOrNull(event.until) } : {}),
    }),
  },
)

/** Everything stored about an event except its bytes. */
export const eventDetail = storedEvent.extend({
  reasonText: z.string().nullable(),
  normalized: normalizedEvent.nullable(),
  headers: z
    .object({ event: z.string().nullable(), timestamp: z.string(), signature: z.string() })
    .nullable(),
  otherBodies: z.array(
    z.object({
      sha256: z.string(),
      bytes: z.int(),
      endpoint: z.string(),
      receivedAt: instant,
      deliveries: z.int(),
      removed: removal.nullable(),
    }),
  ),
})
export type EventDetailJson = z.input<typeof eventDetail>

/** The dispositions of a stored event; a duplicate is not stored again. */
export const STORED_DISPOSITIONS = storedEvent.shape.disposition.options

const FILTER = {
  disposition: z
    .enum(STORED_DISPOSITIONS, `must be one of ${STORED_DISPOSITIONS.join(', ')}`)
    .exactOptional(),
  type: idParameter.exactOptional(),
  customerId: idParameter.exactOptional(),
  endpoint: idParameter.exactOptional(),
  from: instantParameter.exactOptional(),
  to: instantParameter.exactOptional(),
}
const ANY_EVENT = { disposition: null, type: null, customerId: null, endpoint: null, from: null, to: null }

/** Only a list has these. */
const LIST_FILTER = {
  paymentId: idParameter.exactOptional(),
  subscriptionId: idParameter.exactOptional(),
  conflicts: flagParameter.exactOptional(),
}
const ANY_IN_LIST = { ...ANY_EVENT, paymentId: null, subscriptionId: null, conflicts: null }

/** Such a filter matches nothing, whatever is stored: an empty list would look like an answer. */
export function beginsBeforeItEnds(filter: {
  readonly from?: number | null | undefined
  readonly to?: number | null | undefined
}): boolean {
  return filter.from == null || filter.to == null || filter.from <= filter.to
}
export const LATER_THAN_TO = { path: ['from'], message: 'is later than "to"' }

const eventPlace = placeIn((text) => (/^\d{1,15}$/.test(text) ? Number(text) : null), String)
const exportPlace = placeIn(
  (text) => {
    const [, reached, newest] = /^(\d{1,15}) (\d{1,15})$/.exec(text) ?? []
    return newest === undefined ? null : { reached: Number(reached), newest: Number(newest) }
  },
  ({ reached, newest }: ExportPlace) => `${reached} ${newest}`,
)

const exportAnswer = z.object({
  lines: z.array(z.string()),
  counts: z.object(counts('delivery', 'reading', 'removed', 'altered')),
  /** How much of the store is read. */
  progress: z.object(counts('reached', 'total')),
  pagination: z.object({ nextCursor: exportPlace.nullable(), hasMore: z.boolean() }),
})
export type ExportJson = z.input<typeof exportAnswer>

const importAnswer = z.object({
  results: z.array(
    z.union([
      z.object({
        outcome: z.enum(['applied', 'ignored', 'held', 'quarantined', 'duplicate', 'left_out', 'checked']),
      }),
      z.object({
        outcome: z.literal('refused'),
        reason: z.enum([
          'line_too_long',
          'line_invalid',
          'endpoint_not_found',
          'signature_missing',
          'signature_invalid',
          'timestamp_invalid',
          'secret_expired',
          'other_environment',
          'received_at_in_future',
          'received_at_unlikely',
        ]),
        detail: z.string(),
      }),
    ]),
  ),
})
export type ImportJson = z.input<typeof importAnswer>

const STORED = { scope: 'events', environments: 'one' } as const

export const eventQuestions: readonly Route<MountDeps>[] = [
  route('GET /events', {
    operationId: 'listEvents',
    // One request reads a limited number of events.
    summary:
      'The stored events that match a filter, newest first. A page may be short and still have a next one.',
    ...STORED,
    query: z
      .object({ ...FILTER, ...LIST_FILTER, limit: limitParameter, cursor: eventPlace.exactOptional() })
      .refine(beginsBeforeItEnds, LATER_THAN_TO),
    answer: pageOf(storedEvent, eventPlace),
    async handle({ query: { limit, cursor: before = null, ...given }, environment }, deps) {
      const filter = { environment, ...ANY_IN_LIST, ...given }
      const { items, next } = await readEventPage(deps.db, { filter, before, limit })
      if (items.length === 0) await requireKnown(filter, deps)
      return { items, pagination: paginated(next) }
    },
  }),
  route('GET /events/:eventId', {
    operationId: 'getEvent',
    summary: 'Everything stored about one event except its bytes.',
    ...STORED,
    answer: eventDetail,
    errors: ['event_not_found'],
    async handle({ params, environment }, { db }) {
      const event = await readEvent(db, { environment, ...params })
      if (event === null) throw eventNotFound()
      return event
    },
  }),
  route('GET /events/:eventId/body', {
    operationId: 'getEventBody',
    summary:
      'The exact bytes that were sent and signed, or those an erasure left; or another body with the same id.',
    ...STORED,
    query: z.object({
      sha256: z
        .string()
        .regex(/^[0-9a-f]{64}$/, 'is not a SHA-256 in lower-case hex')
        .optional(),
    }),
    answer: 'application/octet-stream',
    tagged: true,
    errors: ['event_not_found', 'body_removed'],
    async handle({ params, query: { sha256 = null }, environment }, { db }) {
      const asked = { environment, ...params }
      const body = await readEventBody(db, asked, sha256)
      if (body === null) {
        const isStored = sha256 !== null && (await readEvent(db, asked)) !== null
        throw isStored ? eventNotFound('The event has no body with this SHA-256.') : eventNotFound()
      }
      if (body.bytes === null) {
        const detail = 'The body of this event was removed: its details say when and why.'
        throw new LatchkeyError('body_removed', detail)
      }
      // An id may hold any character except control characters; a file name in a header may not.
      const fileName = `${params.eventId.replaceAll(/[^\w-]/g, '_')}.body`
      return { content: body.bytes, type: 'application/octet-stream', sha256: body.sha256, fileName }
    },
  }),
  route('GET /exports', {
    operationId: 'exportEvents',
    summary: 'The next lines of an export, for POST /imports. A page may be empty and still have a next one.',
    ...STORED,
    query: z
      .object({ ...FILTER, cursor: exportPlace.exactOptional() })
      .refine(beginsBeforeItEnds, LATER_THAN_TO),
    answer: exportAnswer,
    async handle({ query: { cursor: place = null, ...given }, environment }, deps) {
      const filter = { environment, ...ANY_EVENT, ...given }
      const { lines, counts, reached, newest } = await readExportPage(deps.db, filter, place)
      if (place === null && lines.length === 0) await requireKnown(filter, deps)
      const pagination = paginated(reached < newest ? { reached, newest } : null)
      return { lines, counts, progress: { reached, total: newest }, pagination }
    },
  }),
]

export const importRoute: Route<ImportDeps> = route('POST /imports', {
  operationId: 'importEvents',
  summary: 'Imports some lines of an export, and answers with the result of each, in order.',
  scope: 'admin',
  // The endpoint in each line says which environment it belongs to.
  environments: 'shown',
  query: z.object({ withManual: flagParameter.default(false), dryRun: flagParameter.default(false) }),
  body: z.array(z.string()).max(MAX_IMPORT_LINES, `has more than ${MAX_IMPORT_LINES} lines`),
  bodyType: 'lines',
  answer: importAnswer,
  handle: async ({ query, body, environments }, { importLines }: ImportDeps) => ({
    results: await importLines(body, { environments, ...query }),
  }),
})

function eventNotFound(detail = 'No such event is stored in this environment.'): LatchkeyError {
  return new LatchkeyError('event_not_found', detail)
}

/** @throws LatchkeyError `invalid_request` for what `unknownName` finds */
async function requireKnown(filter: EventFilter, deps: MountDeps): Promise<void> {
  const issue = await unknownName(filter, deps)
  if (issue !== null) throw invalidParameter(issue.path, issue.message)
}

const KNOWN_TYPES: readonly string[] = [
  ...PAYMENT_EVENT_TYPES,
  ...SUBSCRIPTION_EVENT_TYPES,
  ...CUSTOMER_EVENT_TYPES,
  ...INFORMATIVE_EVENT_TYPES,
  ...MANUAL_EVENT_TYPES,
  PAYMENT_REPORTED,
  SUBSCRIPTION_REPORTED,
]
const CANONICAL: Readonly<Record<string, string>> = CANONICAL_TYPE_OF_V2

/**
 * A name in a filter that is probably a mistake: a type that is not documented, or an endpoint that is not configured
 * for the environment; unless such an event is stored, or too much is stored to be sure. Null: there is none.
 */
export async function unknownName(
  { environment, type, endpoint }: Pick<EventFilter, 'environment' | 'type' | 'endpoint'>,
  { endpoints, db }: MountDeps,
): Promise<Issue | null> {
  const isStored = async (only: Partial<EventFilter>) => {
    const filter = { ...ANY_IN_LIST, environment, ...only }
    const { items, next } = await readEventPage(db, { filter, before: null, limit: 1 })
    return items.length > 0 || next !== null
  }
  if (type !== null && !KNOWN_TYPES.includes(type) && !(await isStored({ type }))) {
    const meant = CANONICAL[type] ?? nearestName(type, KNOWN_TYPES)
    const closest = meant === null ? '' : `; the closest one is "${meant}"`
    return {
      path: 'type',
      message: `must be a known type: no stored event has the type ${JSON.stringify(type)}${closest}`,
    }
  }
  const own = endpoints().filter((one) => one.environment === environment)
  const names = [...own.map(({ name }) => name), MANUAL_ENDPOINT, BACKFILL_ENDPOINT]
  if (endpoint === null || names.includes(endpoint) || (await isStored({ endpoint }))) return null
  const message = `must be one of ${names.join(', ')}: no stored event came through another`
  return { path: 'endpoint', message }
}
