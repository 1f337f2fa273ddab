import type { Config } from '../config/types.js'
import type {
  EventBody,
  EventBodyQuery,
  EventPage,
  EventPageQuery,
  EventQuery,
  StoredEventDetail,
} from '../entitlements/stored-event.js'
import * as store from '../store/event-questions.js'
import { readStore } from './read-store.js'

/** One stored event of the configured database; null: there is none. */
export function readEvent(config: Config, query: EventQuery): Promise<StoredEventDetail | null> {
  return readStore(config, (db) => store.readEvent(db, query))
}

/** The bytes of one stored event; null: there is no such event, or body. */
export function readEventBody(config: Config, query: EventBodyQuery): Promise<EventBody | null> {
  return readStore(config, (db) => store.readEventBody(db, query))
}

/** A page of stored events, newest first, however many have to be looked at for it. */
export function readEventPage(config: Config, query: EventPageQuery): Promise<EventPage> {
  return readStore(config, (db) => store.readEventPage(db, query, Number.POSITIVE_INFINITY))
}
