import { describe, expect, it } from 'vitest'
import { insertEvents } from '../../src/store/events.js'
import {
  firstSeqSince,
  loadNewestArrivals,
  loadNewestTimes,
  loadSpreadArrivals,
} from '../../src/store/last-deliveries.js'
import { NOON, newEvent, paymentEvent } from './sample-events.js'
import { temporaryStore } from './temporary-store.js'

/** A store in which the n-th event arrived n seconds after noon. */
async function storeOf(count: number) {
  const db = await temporaryStore()
  const events = Array.from({ length: count }, (_, n) =>
    newEvent(paymentEvent({ id: `evt_${n + 1}` }), { receivedAt: NOON + (n + 1) * 1000 }),
  )
  await db.transaction().execute((trx) => insertEvents(trx, events))
  return db
}

describe('arrivals', () => {
  it('are read newest first, so many and no more, and only those after one', async () => {
    const db = await storeOf(10)
    expect((await loadNewestArrivals(db, { limit: 3 })).map(({ seq }) => seq)).toEqual([10, 9, 8])
    expect(await loadNewestArrivals(db, { limit: 3, after: 9 })).toEqual([
      { seq: 10, endpoint: 'v3', receivedAt: NOON + 10_000 },
    ])
    expect(await loadNewestArrivals(db, { limit: 3, after: 10 })).toEqual([])
  })

  it('are spread evenly over a time of which only some can be read', async () => {
    const db = await storeOf(100)
    const spread = await loadSpreadArrivals(db, { since: NOON + 21_000, before: 91, count: 7 })
    expect(spread.map(({ seq }) => seq)).toEqual([21, 31, 41, 51, 61, 71, 81])
    expect(await loadSpreadArrivals(db, { since: NOON, before: 4, count: 7 })).toHaveLength(3)
    expect(await loadSpreadArrivals(db, { since: NOON + 91_000, before: 91, count: 7 })).toEqual([])
  })

  it.each([
    [0, 1],
    [1_000, 1],
    [1_001, 2],
    [50_000, 50],
    [100_000, 100],
    [100_001, 101],
  ])('%d ms after noon began with number %d', async (later, seq) => {
    expect(await firstSeqSince(await storeOf(100), NOON + later, 101)).toBe(seq)
  })

  it('begin after what was removed', async () => {
    const db = await storeOf(100)
    await db.deleteFrom('events').where('seq', '<', 60).execute()
    expect(await firstSeqSince(db, NOON + 70_000, 101)).toBe(70)
    expect(await firstSeqSince(await temporaryStore(), NOON, 1)).toBe(1)
  })

  it('tell when the newest came, and when it happened', async () => {
    expect(await loadNewestTimes(await temporaryStore())).toBeNull()
    expect(await loadNewestTimes(await storeOf(2))).toEqual({ receivedAt: NOON + 2_000, createdAt: NOON })
  })
})
