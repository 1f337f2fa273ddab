import type { Kysely } from 'kysely'
import { describe, expect, it } from 'vitest'
import { QUARANTINE_REASONS } from '../../src/provider/event.js'
import { readEvent, readEventPage } from '../../src/store/event-questions.js'
import type { EventPageFilter } from '../../src/store/event-walk.js'
import { insertEvents } from '../../src/store/events.js'
import type { Database } from '../../src/store/schema.js'
import { paymentEvent } from '../entitlements/events.js'
import { deliverAgain, everyEvent, NOON, newEvent, numberedEvents, storeOf } from './events.js'

const HELD = newEvent(paymentEvent({ id: 'evt_held', customerId: null }), {
  disposition: 'held',
  reason: 'customer_unknown',
  receivedAt: NOON + 5_000,
})

/** The ids of all pages; `between`: what happens after each. */
async function pagesOf(
  db: Kysely<Database>,
  filter: EventPageFilter,
  { limit = 2, glance = 1_000, between = async () => {} } = {},
) {
  const pages: (readonly string[])[] = []
  let before: number | null = null
  do {
    const page: Awaited<ReturnType<typeof readEventPage>> = await readEventPage(
      db,
      { filter, before, limit },
      glance,
    )
    pages.push(page.items.map(({ id }) => id))
    before = page.next
    await between()
  } while (before !== null)
  return pages
}

describe('a page of stored events', () => {
  it('goes on where the one before ended, each event once, whatever arrives meanwhile', async () => {
    const db = await storeOf(numberedEvents(4))
    let arrived = 0
    const between = async () => {
      arrived += 1
      const later = newEvent(paymentEvent({ id: `evt_later_${arrived}` }))
      await db.transaction().execute((trx) => insertEvents(trx, [later]))
    }
    expect(await pagesOf(db, everyEvent(), { between })).toEqual([
      ['evt_3', 'evt_2'],
      ['evt_1', 'evt_0'],
    ])
  })

  it('looks at so many events and no more, and the pages together still find everything', async () => {
    const seldom = newEvent(paymentEvent({ id: 'evt_seldom', customerId: 'cus_seldom' }))
    const db = await storeOf([seldom, ...numberedEvents(2_400)])
    expect(await pagesOf(db, everyEvent({ customerId: 'cus_seldom' }))).toEqual([[], [], ['evt_seldom']])
  })

  it('finds what waits at once, however much else there is', async () => {
    const db = await storeOf([HELD, ...numberedEvents(1_200)])
    expect(await pagesOf(db, everyEvent({ disposition: 'held' }), { glance: 1 })).toEqual([['evt_held']])
  })
})

describe('one stored event', () => {
  it('counts all other bodies under its id, and shows the first hundred', async () => {
    const db = await storeOf([newEvent()])
    for (let i = 0; i < 103; i += 1) {
      const body = { body: `${i}`, receivedAt: NOON + i }
      await deliverAgain(db, newEvent(paymentEvent({ id: 'evt_1' }), body))
    }
    const event = await readEvent(db, { environment: 'live', eventId: 'evt_1' })
    expect(event?.conflicts).toBe(103)
    expect(event?.otherBodies.map(({ receivedAt }) => receivedAt - NOON)).toEqual([...Array(100).keys()])
  })

  it.each(QUARANTINE_REASONS)('says in words why a quarantined one cannot be used: %s', async (reason) => {
    const unusable = { disposition: 'quarantined', reason, event: null, source: null } as const
    const db = await storeOf([{ ...newEvent(), ...unusable }])
    expect(await readEvent(db, { environment: 'live', eventId: 'evt_1' })).toMatchObject({
      normalized: null,
      reasonText: expect.stringMatching(/^cannot be used, since .+/),
    })
  })
})
