import type { IncomingMessage } from 'node:http'
import type { Logger } from 'pino'
import type {
  EventBody,
  EventBodyQuery,
  EventFilter,
  EventPage,
  EventPageQuery,
  EventQuery,
  StoredEventDetail,
} from '../entitlements/stored-event.js'
import { LatchkeyError } from '../errors.js'
import type { ExportPage, ExportPlace } from '../history/export.js'
import type { Endpoint } from '../provider/endpoint.js'
import type { Environment } from '../provider/event.js'
import { isUsableId } from '../provider/ids.js'
import type { Authenticate } from './authenticate.js'
import { eventDetailJson, storedEventJson } from './event-json.js'
import type { MountedPath } from './mount.js'
import {
  cursorAt,
  ENVIRONMENT_ONLY,
  invalidParameter,
  readEnvironment,
  readInstant,
  readPage,
  readParameter,
  readQuery,
} from './query.js'
import { createRoute, requireMethod } from './raw-route.js'
import type { RawHandler } from './route.js'
import { sendJson, sendTaggedBytes } from './send.js'

/** All reject with `store_unavailable` if the store can't be read. */
export interface StoredEventQuestions {
  readonly readEventPage: (query: EventPageQuery) => Promise<EventPage>
  /** Null if no such event is stored. */
  readonly readEvent: (query: EventQuery) => Promise<StoredEventDetail | null>
  /** Null if no such event is stored, or no such body came under its id. */
  readonly readEventBody: (query: EventBodyQuery) => Promise<EventBody | null>
  /** @param place null: from the first event */
  readonly readExportPage: (filter: EventFilter, place: ExportPlace | null) => Promise<ExportPage>
}

export interface StoredEventDeps {
  readonly authenticate: Authenticate
  /** The environments of the configured endpoints; asked each time, since a reload may change them. */
  readonly environments: () => readonly Environment[]
  /** Every endpoint through which events may come today, and the one of acts by hand; asked each time as well. */
  readonly endpointNames: () => readonly string[]
  readonly endpointNamed: (name: string) => Endpoint | undefined
  readonly storedEvents: StoredEventQuestions
}

/** The routes that show what is stored, to keys with the scope `events`. */
export function eventRoutes(deps: StoredEventDeps, log: Logger): readonly MountedPath[] {
  return [
    createRoute('/events', getEvents(deps), log),
    createRoute('/events/:eventId', getEvent(deps), log),
    createRoute('/events/:eventId/body', getEventBody(deps), log),
    createRoute('/exports', getExport(deps), log),
  ]
}

function readQuestion(
  req: IncomingMessage,
  { authenticate, environments }: StoredEventDeps,
  known: readonly string[],
): { readonly environment: Environment; readonly query: URLSearchParams } {
  const key = authenticate(req, 'events')
  const query = readQuery(req, known)
  return { environment: readEnvironment(query, environments(), key), query }
}

const NOT_STORED = { 'Cache-Control': 'no-store' }

const FILTER_PARAMETERS = [
  'environment',
  'disposition',
  'type',
  'customerId',
  'endpoint',
  'from',
  'to',
] as const
const LIST_PARAMETERS = [...FILTER_PARAMETERS, 'limit', 'cursor']
const EXPORT_PARAMETERS = [...FILTER_PARAMETERS, 'cursor']
const PLACE = /^\d{1,15}$/

/**
 * GET /events: the stored events that match a filter, newest first. A page may be short, or empty, and still have a
 * next one: a request looks at a limited number of events.
 */
function getEvents(deps: StoredEventDeps): RawHandler {
  return async (req, res) => {
    requireMethod(req, res, 'GET', 'HEAD')
    const { environment, query } = readQuestion(req, deps, LIST_PARAMETERS)
    const filter = readFilter(query, environment)
    const { after, limit } = readPage(query)
    if (after !== '' && !PLACE.test(after)) throw invalidParameter('cursor', 'is none that was given out')
    const before = after === '' ? null : Number(after)
    const { items, next } = await deps.storedEvents.readEventPage({ filter, before, limit })
    const problem = items.length === 0 ? await unknownEndpoint(filter, deps) : null
    if (problem !== null) throw invalidParameter('endpoint', problem)
    const nextCursor = next === null ? null : cursorAt(String(next))
    const pagination = { nextCursor, hasMore: next !== null }
    sendJson(res, 200, { items: items.map(storedEventJson), pagination }, NOT_STORED)
  }
}

const EXPORT_PLACE = /^(\d{1,15}) (\d{1,15})$/

/**
 * GET /exports: the next lines of an export, which POST /imports takes, with how much of the store is read for it.
 * A page may have no lines, and still have a next one.
 */
function getExport(deps: StoredEventDeps): RawHandler {
  return async (req, res) => {
    requireMethod(req, res, 'GET', 'HEAD')
    const { environment, query } = readQuestion(req, deps, EXPORT_PARAMETERS)
    const filter = readFilter(query, environment)
    const { after } = readPage(query)
    const [, reachedBefore, newestThen] = EXPORT_PLACE.exec(after) ?? []
    if (after !== '' && newestThen === undefined)
      throw invalidParameter('cursor', 'is none that was given out')
    const place = after === '' ? null : { reached: Number(reachedBefore), newest: Number(newestThen) }
    const { lines, counts, reached, newest } = await deps.storedEvents.readExportPage(filter, place)
    const problem = place === null && lines.length === 0 ? await unknownEndpoint(filter, deps) : null
    if (problem !== null) throw invalidParameter('endpoint', problem)
    const hasMore = reached < newest
    const pagination = { nextCursor: hasMore ? cursorAt(`${reached} ${newest}`) : null, hasMore }
    sendJson(res, 200, { lines, counts, progress: { reached, total: newest }, pagination }, NOT_STORED)
  }
}

/** One answer of `GET /exports`. */
export interface ExportJson extends Pick<ExportPage, 'lines' | 'counts'> {
  readonly progress: { readonly reached: number; readonly total: number }
  readonly pagination: { readonly nextCursor: string | null; readonly hasMore: boolean }
}

/** GET /events/:eventId: everything that is known of one stored event but its bytes. */
function getEvent(deps: StoredEventDeps): RawHandler<'eventId'> {
  return async (req, res, { eventId }) => {
    requireMethod(req, res, 'GET', 'HEAD')
    const { environment } = readQuestion(req, deps, ENVIRONMENT_ONLY)
    const event = await deps.storedEvents.readEvent({ environment, eventId })
    if (event === null) throw eventNotFound()
    sendJson(res, 200, eventDetailJson(event), NOT_STORED)
  }
}

const SHA256_HEX = /^[0-9a-f]{64}$/

/**
 * GET /events/:eventId/body: the bytes exactly as they were sent and signed, or what an erasure left of them.
 * `?sha256=` names another body that came under the same id. No browser may take a sender's bytes for a page of ours.
 */
function getEventBody(deps: StoredEventDeps): RawHandler<'eventId'> {
  const { readEvent, readEventBody } = deps.storedEvents
  return async (req, res, { eventId }) => {
    requireMethod(req, res, 'GET', 'HEAD')
    const { environment, query } = readQuestion(req, deps, ['environment', 'sha256'])
    const sha256 = readParameter(query, 'sha256')
    if (sha256 !== null && !SHA256_HEX.test(sha256)) {
      throw invalidParameter('sha256', 'is not a SHA-256 in lower-case hex')
    }
    const body = await readEventBody({ environment, eventId, sha256 })
    if (body === null) {
      const isStored = sha256 !== null && (await readEvent({ environment, eventId })) !== null
      throw isStored ? eventNotFound('The event has no body with this SHA-256.') : eventNotFound()
    }
    if (body.bytes === null) throw new LatchkeyError('body_removed', 'The body of this event was removed.')
    // An id may hold any character that is no control character; a file's name in a header may not.
    const fileName = `${eventId.replaceAll(/[^\w-]/g, '_')}.body`
    sendTaggedBytes(res, body.sha256, body.bytes, {
      'Content-Type': 'application/octet-stream',
      'Content-Disposition': `attachment; filename="${fileName}"`,
    })
  }
}

function eventNotFound(detail = 'No such event is stored in this environment.'): LatchkeyError {
  return new LatchkeyError('event_not_found', detail)
}

/** What a stored event can be; a duplicate is not stored again. */
export const STORED_DISPOSITIONS = ['applied', 'ignored', 'held', 'quarantined'] as const

/** @throws {LatchkeyError} `invalid_request` for a value that no event can have */
function readFilter(query: URLSearchParams, environment: Environment): EventFilter {
  const disposition = readParameter(query, 'disposition')
  const known = STORED_DISPOSITIONS.find((one) => one === disposition) ?? null
  if (disposition !== known) {
    throw invalidParameter('disposition', `is none of ${STORED_DISPOSITIONS.join(', ')}`)
  }
  const filter = {
    environment,
    disposition: known,
    type: readWord(query, 'type'),
    customerId: readWord(query, 'customerId'),
    endpoint: readWord(query, 'endpoint'),
    from: readInstant(query, 'from'),
    to: readInstant(query, 'to'),
  }
  if (endsBeforeItBegins(filter)) throw invalidParameter('from', LATER_THAN_TO)
  return filter
}

function readWord(query: URLSearchParams, name: string): string | null {
  const text = readParameter(query, name)
  if (text !== null && !isUsableId(text)) {
    throw invalidParameter(name, 'is not a text of 1 to 255 characters without control characters')
  }
  return text
}

/** Such a filter matches nothing, whatever is stored: an empty list would look like an answer. */
export function endsBeforeItBegins({ from, to }: Pick<EventFilter, 'from' | 'to'>): boolean {
  return from !== null && to !== null && from > to
}

/** The message about its `from`. */
export const LATER_THAN_TO = 'is later than "to"'

/**
 * What is wrong with the endpoint of a filter: it is not configured for the environment, and no stored event came
 * through it (events outlive the config of their endpoint). Null if it is known, and if too much is stored to be sure.
 */
export async function unknownEndpoint(
  { environment, endpoint }: Pick<EventFilter, 'environment' | 'endpoint'>,
  {
    endpointNames,
    endpointNamed,
    storedEvents,
  }: Pick<StoredEventDeps, 'endpointNames' | 'endpointNamed' | 'storedEvents'>,
): Promise<string | null> {
  // The endpoint of acts by hand belongs to no environment.
  const names = endpointNames().filter(
    (name) => (endpointNamed(name)?.environment ?? environment) === environment,
  )
  if (endpoint === null || names.includes(endpoint)) return null
  const all = { disposition: null, type: null, customerId: null, from: null, to: null }
  const filter = { ...all, environment, endpoint }
  const { items, next } = await storedEvents.readEventPage({ filter, before: null, limit: 1 })
  if (items.length > 0 || next !== null) return null
  return `is none of ${names.join(', ')}, and nothing came through it`
}
