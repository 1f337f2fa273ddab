import type { Kysely } from 'kysely'
import { describe, expect, it } from 'vitest'
import type { EventFilter } from '../../src/entitlements/stored-event.js'
import { createEventPageReader } from '../../src/store/event-page-reader.js'
import { insertEvents } from '../../src/store/events.js'
import type { Database } from '../../src/store/schema.js'
import { NOON, newEvent, paymentEvent, subscriptionEvent } from './sample-events.js'
import { deliverAgain, everyEvent, numberedEvents, quarantined, storeOf } from './stored-events.js'

const HELD = newEvent(paymentEvent({ id: 'evt_held', customerId: null, createdAt: NOON - 60_000 }), {
  disposition: 'held',
  reason: 'customer_unknown',
  receivedAt: NOON + 5_000,
})
const BROKEN = quarantined('{"broken', { endpoint: 'legacy', receivedAt: NOON + 9_000 })
const SANDBOX = newEvent(paymentEvent({ id: 'evt_1' }), { environment: 'sandbox' })
const EVENTS = [newEvent(paymentEvent()), HELD, SANDBOX, newEvent(subscriptionEvent()), BROKEN]

async function idsOf(db: Kysely<Database>, filter: EventFilter): Promise<readonly string[]> {
  const { items, next } = await createEventPageReader(db)({ filter, before: null, limit: 10 })
  expect(next).toBe(null)
  return items.map(({ id }) => id)
}

describe('a page of stored events', () => {
  it('tells each in full, without its bytes, the newest first', async () => {
    const db = await storeOf(EVENTS)
    const other = newEvent(paymentEvent(), { body: '{"other":"body"}', receivedAt: NOON + 20_000 })
    await deliverAgain(db, other)
    const { items } = await createEventPageReader(db)({ filter: everyEvent(), before: null, limit: 10 })
    expect(items.map(({ id }) => id)).toEqual([BROKEN.eventId, 'evt_2', 'evt_held', 'evt_1'])
    expect(items[0]).toEqual({
      id: BROKEN.eventId,
      environment: 'live',
      endpoint: 'legacy',
      generation: null,
      type: null,
      disposition: 'quarantined',
      reason: 'not_json',
      createdAt: null,
      receivedAt: NOON + 9_000,
      lastReceivedAt: NOON + 9_000,
      deliveries: 1,
      customerId: null,
      source: null,
      conflicts: 0,
      normalizerVersion: 1,
      bodySha256: BROKEN.bodySha256,
      bodyBytes: 8,
      bodyRemoved: null,
    })
    expect(items[3]).toMatchObject({
      type: 'payment.succeeded',
      generation: 'v3',
      createdAt: NOON,
      lastReceivedAt: NOON + 20_000,
      deliveries: 2,
      customerId: 'cus_1',
      source: { kind: 'payment', id: 'pay_1' },
      conflicts: 1,
      bodySha256: EVENTS[0]?.bodySha256,
    })
  })

  it.each<[string, Partial<EventFilter>, readonly string[]]>([
    ['the environment', { environment: 'sandbox' }, ['evt_1']],
    ['a disposition', { disposition: 'applied' }, ['evt_2', 'evt_1']],
    ['what waits', { disposition: 'held' }, ['evt_held']],
    ['what can not be used', { disposition: 'quarantined' }, [BROKEN.eventId]],
    ['a type', { type: 'payment.succeeded' }, ['evt_held', 'evt_1']],
    ['a customer', { customerId: 'cus_1' }, ['evt_2', 'evt_1']],
    ['an endpoint', { endpoint: 'legacy' }, [BROKEN.eventId]],
    ['a first instant, itself included', { from: NOON + 5_000 }, [BROKEN.eventId, 'evt_held']],
    ['a last instant, itself left out', { to: NOON + 5_000 }, ['evt_2', 'evt_1']],
    ['all of it together', { disposition: 'held', type: 'payment.succeeded', from: NOON }, ['evt_held']],
    ['what waits and matches', { disposition: 'held', type: 'payment.failed' }, []],
    ['what waits elsewhere', { disposition: 'held', environment: 'sandbox' }, []],
    ['an unknown type', { type: 'payment.unheard' }, []],
  ])('can be chosen by %s', async (_what, told, ids) => {
    expect(await idsOf(await storeOf(EVENTS), everyEvent(told))).toEqual(ids)
  })

  it('goes on where the one before ended, each event once, whatever arrives meanwhile', async () => {
    const db = await storeOf(numberedEvents(5))
    const readPage = createEventPageReader(db)
    const first = await readPage({ filter: everyEvent(), before: null, limit: 2 })
    expect(first.items.map(({ id }) => id)).toEqual(['evt_4', 'evt_3'])
    const later = newEvent(subscriptionEvent({ id: 'evt_later' }))
    await db.transaction().execute((trx) => insertEvents(trx, [later]))
    const second = await readPage({ filter: everyEvent(), before: first.next, limit: 2 })
    expect(second.items.map(({ id }) => id)).toEqual(['evt_2', 'evt_1'])
    const last = await readPage({ filter: everyEvent(), before: second.next, limit: 2 })
    expect(last).toMatchObject({ items: [{ id: 'evt_0' }], next: null })
  })

  it('ends with the last event, where the page is just full', async () => {
    const db = await storeOf(numberedEvents(2))
    const { items, next } = await createEventPageReader(db)({ filter: everyEvent(), before: null, limit: 2 })
    expect({ count: items.length, next }).toEqual({ count: 2, next: null })
  })

  it('looks at so many events and no more, and the pages together still find everything', async () => {
    const seldom = newEvent(paymentEvent({ id: 'evt_seldom', customerId: 'cus_seldom' }))
    const db = await storeOf([seldom, ...numberedEvents(2_400)])
    const readPage = createEventPageReader(db, { maxLookedAt: 1_000 })
    const filter = everyEvent({ customerId: 'cus_seldom' })
    const pages: (readonly string[])[] = []
    let before: number | null = null
    do {
      const page = await readPage({ filter, before, limit: 20 })
      pages.push(page.items.map(({ id }) => id))
      before = page.next
    } while (before !== null)
    expect(pages).toEqual([[], [], ['evt_seldom']])
  })

  it('finds what waits at once, however much else there is', async () => {
    const db = await storeOf([HELD, ...numberedEvents(1_200)])
    const readPage = createEventPageReader(db, { maxLookedAt: 1 })
    const filter = everyEvent({ disposition: 'held' })
    expect(await readPage({ filter, before: null, limit: 20 })).toMatchObject({
      items: [{ id: 'evt_held', reason: 'customer_unknown' }],
      next: null,
    })
  })
})
