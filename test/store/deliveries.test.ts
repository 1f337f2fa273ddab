import { describe, expect, it } from 'vitest'
import { loadNewestTimes, loadPaces, recordArrivals } from '../../src/store/deliveries.js'
import { insertEvents, type NewEvent } from '../../src/store/events.js'
import { NOON, newEvent, paymentEvent } from './sample-events.js'
import { temporaryStore } from './temporary-store.js'

const MINUTE = 60_000

/** A store to which these came, a transaction for each. */
async function storeAfter(...deliveries: readonly Partial<Omit<NewEvent, 'body'>>[]) {
  const db = await temporaryStore()
  for (const one of deliveries) {
    await db.transaction().execute((trx) => recordArrivals(trx, [newEvent(paymentEvent(), one)]))
  }
  return db
}

describe('the pace of deliveries', () => {
  it('is none of an empty store', async () => {
    expect(await loadPaces(await temporaryStore())).toEqual(new Map())
  })

  it('is kept of each endpoint', async () => {
    const db = await storeAfter(
      { endpoint: 'v3', receivedAt: NOON },
      { endpoint: 'legacy', receivedAt: NOON + 5 },
      { endpoint: 'v3', receivedAt: NOON + MINUTE },
    )
    const paces = await loadPaces(db)
    expect(paces.get('v3')).toMatchObject({ arrivals: 2, lastAt: NOON + MINUTE, meanInterval: MINUTE })
    expect(paces.get('legacy')).toMatchObject({ arrivals: 1, lastAt: NOON + 5, meanInterval: null })
  })

  it('is the same of one batch as of many', async () => {
    const times = [0, 3, 4, 9, 20].map((minutes) => ({ receivedAt: NOON + minutes * MINUTE }))
    const db = await temporaryStore()
    const batch = times.map((time) => newEvent(paymentEvent(), time))
    await db.transaction().execute((trx) => recordArrivals(trx, batch))
    const many = await storeAfter(...times)
    expect(await loadPaces(db)).toEqual(await loadPaces(many))
  })

  it('takes no act by hand for a delivery', async () => {
    const db = await storeAfter({ endpoint: 'manual', receivedAt: NOON, headers: null })
    expect(await loadPaces(db)).toEqual(new Map())
  })
})

it('the newest event tells when it came, and when it happened', async () => {
  const db = await temporaryStore()
  expect(await loadNewestTimes(db)).toBeNull()
  const events = [1, 2].map((n) =>
    newEvent(paymentEvent({ id: `evt_${n}` }), { receivedAt: NOON + n * 1000 }),
  )
  await db.transaction().execute((trx) => insertEvents(trx, events))
  expect(await loadNewestTimes(db)).toEqual({ receivedAt: NOON + 2_000, createdAt: NOON })
})
