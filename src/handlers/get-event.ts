import { ENVIRONMENT_ONLY } from './environment.js'
import { eventDetailJson } from './event-json.js'
import type { RawHandler } from './raw-handler.js'
import { requireMethod } from './route.js'
import { sendJson } from './send.js'
import { eventNotFound, readQuestion, type StoredEventDeps } from './stored-events.js'

/** GET /events/:eventId: everything that is known of one stored event but its bytes. */
export function getEvent(deps: StoredEventDeps): RawHandler<'eventId'> {
  const { readEvent } = deps.storedEvents
  return async (req, res, { eventId }) => {
    requireMethod(req, res, 'GET', 'HEAD')
    const { environment } = readQuestion(req, deps, ENVIRONMENT_ONLY)
    const event = await readEvent({ environment, eventId })
    if (event === null) throw eventNotFound()
    sendJson(res, 200, eventDetailJson(event), { 'Cache-Control': 'no-store' })
  }
}
