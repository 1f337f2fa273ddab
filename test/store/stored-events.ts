import type { Kysely } from 'kysely'
import type { Environment } from '../../src/provider/event.js'
import { insertEvents, type NewEvent, recordDuplicates } from '../../src/store/events.js'
import type { Database } from '../../src/store/schema.js'
import type { EventFilter } from '../../src/store/stored-event.js'
import { newEvent, paymentEvent } from './sample-events.js'
import { temporaryStore } from './temporary-store.js'

/** A store with these events, which arrived in this order. */
export async function storeOf(events: readonly NewEvent[]): Promise<Kysely<Database>> {
  const db = await temporaryStore()
  await db.transaction().execute((trx) => insertEvents(trx, events))
  return db
}

/** A delivery of an event that is stored: counted, and kept if its body is another. */
export function deliverAgain(db: Kysely<Database>, delivery: NewEvent): Promise<unknown> {
  return db.transaction().execute((trx) => recordDuplicates(trx, [delivery]))
}

export function everyEvent(told: Partial<EventFilter> = {}): EventFilter {
  return {
    environment: 'live',
    disposition: null,
    type: null,
    customerId: null,
    endpoint: null,
    from: null,
    to: null,
    ...told,
  }
}

/** `count` payment events that differ by their ids alone: `evt_0`, `evt_1` and so on. */
export function numberedEvents(count: number, environment: Environment = 'live'): NewEvent[] {
  return Array.from({ length: count }, (_, i) =>
    newEvent(paymentEvent({ id: `evt_${i}`, paymentId: `pay_${i}` }), { environment }),
  )
}

/** Authentic, and not usable. */
export function quarantined(body: string, told: Partial<NewEvent> = {}): NewEvent {
  const { bodySha256, ...delivered } = newEvent(paymentEvent(), { body })
  const eventId = `sha256:${bodySha256}`
  const what = { disposition: 'quarantined', reason: 'not_json', event: null, source: null } as const
  return { ...delivered, bodySha256, eventId, ...what, ...told }
}
