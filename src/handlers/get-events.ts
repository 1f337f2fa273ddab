import { FILTER_PARAMETERS, readEventFilter } from './event-filter.js'
import { storedEventJson } from './event-json.js'
import { cursorAt, readPage } from './page.js'
import { invalidParameter } from './query.js'
import type { RawHandler } from './raw-handler.js'
import { requireMethod } from './route.js'
import { sendJson } from './send.js'
import { readQuestion, type StoredEventDeps } from './stored-events.js'
import { unknownEndpoint } from './unknown-endpoint.js'

const PARAMETERS = [...FILTER_PARAMETERS, 'limit', 'cursor'] as const
const PLACE = /^\d{1,15}$/

/**
 * GET /events: the stored events that a filter means, newest first. A page may be short, or empty, and still go on:
 * a request looks at so many events and no more.
 */
export function getEvents(deps: StoredEventDeps): RawHandler {
  const { readEventPage } = deps.storedEvents
  return async (req, res) => {
    requireMethod(req, res, 'GET', 'HEAD')
    const { environment, query } = readQuestion(req, deps, PARAMETERS)
    const filter = readEventFilter(query, environment)
    const { after, limit } = readPage(query)
    const { items, next } = await readEventPage({ filter, before: placeIn(after), limit })
    const problem = items.length === 0 ? await unknownEndpoint(filter, deps) : null
    if (problem !== null) throw invalidParameter('endpoint', problem)
    const nextCursor = next === null ? null : cursorAt(String(next))
    const body = { items: items.map(storedEventJson), pagination: { nextCursor, hasMore: next !== null } }
    sendJson(res, 200, body, { 'Cache-Control': 'no-store' })
  }
}

/** @throws LatchkeyError `invalid_request` for a cursor of another list */
function placeIn(after: string): number | null {
  if (after === '') return null
  if (!PLACE.test(after)) throw invalidParameter('cursor', 'is none that was given out')
  return Number(after)
}
