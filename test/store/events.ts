import { createHash } from 'node:crypto'
import type { Kysely } from 'kysely'
import type { Environment, PaymentEvent, SubscriptionEvent } from '../../src/provider/event.js'
import type { EventPageFilter } from '../../src/store/event-walk.js'
import { insertEvents, loadStoredHashes, type NewEvent, recordDuplicates } from '../../src/store/events.js'
import type { Database } from '../../src/store/schema.js'
import { paymentEvent } from '../entitlements/events.js'
import { temporaryStore } from './temporary-store.js'

export const NOON = Date.parse('2026-03-01T12:00:00Z')

/** An event as it is stored: about the payment or subscription that it names. */
export function newEvent(
  event: PaymentEvent | SubscriptionEvent = paymentEvent({ id: 'evt_1' }),
  { body = JSON.stringify(event), ...told }: Partial<Omit<NewEvent, 'body'>> & { body?: string } = {},
): NewEvent {
  const id = event.subject === 'payment' ? event.paymentId : event.subscriptionId
  return {
    environment: 'live',
    eventId: event.id,
    endpoint: 'v3',
    receivedAt: NOON + 1_000,
    headers: { event: event.type, timestamp: '1772366400', signature: 'v1=00' },
    body: Buffer.from(body),
    bodySha256: createHash('sha256').update(body).digest('hex'),
    disposition: 'applied',
    reason: null,
    event,
    source: id === null ? null : { kind: event.subject, id },
    ...told,
  }
}

/** `count` payment events that differ by their ids alone: `evt_0`, `evt_1` and so on. */
export function numberedEvents(count: number, environment: Environment = 'live'): NewEvent[] {
  return Array.from({ length: count }, (_, i) =>
    newEvent(paymentEvent({ id: `evt_${i}`, paymentId: `pay_${i}` }), { environment }),
  )
}

/** A store with these events, which arrived in this order. */
export async function storeOf(events: readonly NewEvent[]): Promise<Kysely<Database>> {
  const db = await temporaryStore()
  await db.transaction().execute((trx) => insertEvents(trx, events))
  return db
}

/** Deliveries of events that are stored: counted, and kept where their body is another. */
export function deliverAgain(db: Kysely<Database>, ...deliveries: readonly NewEvent[]) {
  return db.transaction().execute(async (trx) => {
    const ids = deliveries.map(({ eventId }) => eventId)
    const stored = await loadStoredHashes(trx, 'live', ids)
    const conflicts = deliveries.filter(({ eventId, bodySha256 }) => stored.get(eventId) !== bodySha256)
    await recordDuplicates(trx, deliveries, conflicts)
    return conflicts
  })
}

export function everyEvent(told: Partial<EventPageFilter> = {}): EventPageFilter {
  const every = { disposition: null, type: null, customerId: null, endpoint: null, from: null, to: null }
  const listed = { paymentId: null, subscriptionId: null, conflicts: null }
  return { environment: 'live', ...every, ...listed, ...told }
}
