import type { Logger } from 'pino'
import { getEvent } from './get-event.js'
import { getEventBody } from './get-event-body.js'
import { getEvents } from './get-events.js'
import type { Route } from './raw-handler.js'
import { createRoute } from './route.js'
import type { StoredEventDeps } from './stored-events.js'

/** The routes that show what is stored. */
export function eventRoutes(deps: StoredEventDeps, log: Logger): readonly Route[] {
  return [
    createRoute('/events', getEvents(deps), log),
    createRoute('/events/:eventId', getEvent(deps), log),
    createRoute('/events/:eventId/body', getEventBody(deps), log),
  ]
}
