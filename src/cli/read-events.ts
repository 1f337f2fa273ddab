import type { Config } from '../config/types.js'
import type { StoredEventDetail } from '../entitlements/stored-event.js'
import { createEventBodyReader, type EventBody, type EventBodyQuery } from '../store/event-body-reader.js'
import { createEventPageReader, type EventPage, type EventPageQuery } from '../store/event-page-reader.js'
import { createEventReader, type EventQuery } from '../store/event-reader.js'
import { readStore } from './read-store.js'

/** One stored event of the configured database; null: there is none. */
export function readEvent(config: Config, query: EventQuery): Promise<StoredEventDetail | null> {
  return readStore(config, (db) => createEventReader(db)(query))
}

/** The bytes of one stored event; null: there is no such event, or body. */
export function readEventBody(config: Config, query: EventBodyQuery): Promise<EventBody | null> {
  return readStore(config, (db) => createEventBodyReader(db)(query))
}

/** A page of stored events, newest first, however many have to be looked at for it. */
export function readEventPage(config: Config, query: EventPageQuery): Promise<EventPage> {
  return readStore(config, (db) =>
    createEventPageReader(db, { maxLookedAt: Number.POSITIVE_INFINITY })(query),
  )
}
