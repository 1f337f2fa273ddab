import { createHash } from 'node:crypto'
import type { Kysely } from 'kysely'
import { describe, expect, it } from 'vitest'
import { QUARANTINE_REASONS } from '../../src/provider/event.js'
import { countWaiting, readEvent, readEventBody, readEventPage } from '../../src/store/event-questions.js'
import { insertEvents } from '../../src/store/events.js'
import type { Database } from '../../src/store/schema.js'
import type { EventFilter, EventPage } from '../../src/store/stored-event.js'
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
  const { items, next } = await readEventPage(db, { filter, before: null, limit: 10 })
  expect(next).toBe(null)
  return items.map(({ id }) => id)
}

describe('a page of stored events', () => {
  it.each<[string, Partial<EventFilter>, readonly string[]]>([
    ['a first instant, itself included', { from: NOON + 5_000 }, [BROKEN.eventId, 'evt_held']],
    ['a last instant, itself left out', { to: NOON + 5_000 }, ['evt_2', 'evt_1']],
    ['all of it together', { disposition: 'held', type: 'payment.succeeded', from: NOON }, ['evt_held']],
    ['what waits and matches', { disposition: 'held', type: 'payment.failed' }, []],
    ['what waits elsewhere', { disposition: 'held', environment: 'sandbox' }, []],
  ])('can be chosen by %s', async (_what, told, ids) => {
    expect(await idsOf(await storeOf(EVENTS), everyEvent(told))).toEqual(ids)
  })

  it('goes on where the one before ended, each event once, whatever arrives meanwhile', async () => {
    const db = await storeOf(numberedEvents(5))
    const first = await readEventPage(db, { filter: everyEvent(), before: null, limit: 2 })
    expect(first.items.map(({ id }) => id)).toEqual(['evt_4', 'evt_3'])
    const later = newEvent(subscriptionEvent({ id: 'evt_later' }))
    await db.transaction().execute((trx) => insertEvents(trx, [later]))
    const second = await readEventPage(db, { filter: everyEvent(), before: first.next, limit: 2 })
    expect(second.items.map(({ id }) => id)).toEqual(['evt_2', 'evt_1'])
    const last = await readEventPage(db, { filter: everyEvent(), before: second.next, limit: 2 })
    expect(last).toMatchObject({ items: [{ id: 'evt_0' }], next: null })
  })

  it('ends with the last event, where the page is just full', async () => {
    const db = await storeOf(numberedEvents(2))
    const { items, next } = await readEventPage(db, { filter: everyEvent(), before: null, limit: 2 })
    expect({ count: items.length, next }).toEqual({ count: 2, next: null })
  })

  it('looks at so many events and no more, and the pages together still find everything', async () => {
    const seldom = newEvent(paymentEvent({ id: 'evt_seldom', customerId: 'cus_seldom' }))
    const db = await storeOf([seldom, ...numberedEvents(2_400)])
    const filter = everyEvent({ customerId: 'cus_seldom' })
    const pages: (readonly string[])[] = []
    let before: number | null = null
    do {
      const page: EventPage = await readEventPage(db, { filter, before, limit: 20 }, 1_000)
      pages.push(page.items.map(({ id }) => id))
      before = page.next
    } while (before !== null)
    expect(pages).toEqual([[], [], ['evt_seldom']])
  })

  it('finds what waits at once, however much else there is', async () => {
    const db = await storeOf([HELD, ...numberedEvents(1_200)])
    const filter = everyEvent({ disposition: 'held' })
    expect(await readEventPage(db, { filter, before: null, limit: 20 }, 1)).toMatchObject({
      items: [{ id: 'evt_held', reason: 'customer_unknown' }],
      next: null,
    })
  })
})

describe('one stored event', () => {
  const EVENT = newEvent(paymentEvent())
  const ABOUT = { environment: 'live', eventId: 'evt_1' } as const

  it('counts all other bodies under its id, and shows the first hundred', async () => {
    const db = await storeOf([EVENT])
    for (let i = 0; i < 103; i += 1) {
      await deliverAgain(db, newEvent(paymentEvent(), { body: `${i}`, receivedAt: NOON + i }))
    }
    const event = await readEvent(db, ABOUT)
    expect(event?.conflicts).toBe(103)
    expect(event?.otherBodies.map(({ receivedAt }) => receivedAt - NOON)).toEqual([...Array(100).keys()])
  })

  it.each(QUARANTINE_REASONS)('says in words why a quarantined one can not be used: %s', async (reason) => {
    const event = quarantined('?', { reason })
    expect(await readEvent(await storeOf([event]), { ...ABOUT, eventId: event.eventId })).toMatchObject({
      normalized: null,
      reasonText: expect.stringMatching(/^can not be used, since .+/),
    })
  })

  it('has the hash of what is left of a rewritten body, which is found by both hashes', async () => {
    const left = Buffer.from('{"left":"of it"}')
    const leftSha256 = createHash('sha256').update(left).digest('hex')
    const removed = { why: 'redacted', at: NOON + 5_000 } as const
    const { bodySha256: sha256, body } = EVENT
    const bytes = body?.length ?? 0
    const db = await storeOf([{ ...EVENT, body: left, removed: { ...removed, bytes } }])
    for (const asked of [null, sha256, leftSha256]) {
      expect(await readEventBody(db, { ...ABOUT, sha256: asked })).toEqual({
        sha256: leftSha256,
        bytes: left,
        removed,
      })
    }
    const shown = {
      bodySha256: leftSha256,
      bodyBytes: left.length,
      bodyRemoved: { ...removed, sha256, bytes },
    }
    expect(await readEvent(db, ABOUT)).toMatchObject(shown)
    const { items } = await readEventPage(db, { filter: everyEvent(), before: null, limit: 1 })
    expect(items).toMatchObject([shown])
  })
})

it('events that wait are counted by environment and disposition', async () => {
  expect(await countWaiting(await storeOf(EVENTS))).toEqual([
    { environment: 'live', disposition: 'held', count: 1 },
    { environment: 'live', disposition: 'quarantined', count: 1 },
  ])
})
