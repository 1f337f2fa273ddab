import { describe, expect, it } from 'vitest'
import { loadPaces, recordArrivals } from '../../src/store/deliveries.js'
import type { NewEvent } from '../../src/store/events.js'
import { NOON, newEvent } from './events.js'
import { temporaryStore } from './temporary-store.js'

const MINUTE = 60_000

/** The paces after these came, a transaction for each batch. */
async function pacesAfter(...batches: readonly (readonly Partial<Omit<NewEvent, 'body'>>[])[]) {
  const db = await temporaryStore()
  for (const batch of batches) {
    const arrived = batch.map((one) => newEvent(undefined, one))
    await db.transaction().execute((trx) => recordArrivals(trx, arrived))
  }
  return loadPaces(db)
}

describe('the pace of deliveries', () => {
  it('is kept of each endpoint', async () => {
    const paces = await pacesAfter(
      [{ endpoint: 'v3', receivedAt: NOON }],
      [{ endpoint: 'legacy', receivedAt: NOON + 5 }],
      [{ endpoint: 'v3', receivedAt: NOON + MINUTE }],
    )
    expect(paces.get('v3')).toMatchObject({ arrivals: 2, lastAt: NOON + MINUTE, meanInterval: MINUTE })
    expect(paces.get('legacy')).toMatchObject({ arrivals: 1, lastAt: NOON + 5, meanInterval: null })
  })

  it('is the same of one batch as of many', async () => {
    const times = [0, 3, 4, 9, 20].map((minutes) => ({ receivedAt: NOON + minutes * MINUTE }))
    expect(await pacesAfter(times)).toEqual(await pacesAfter(...times.map((time) => [time])))
  })

  it('takes no act by hand for a delivery', async () => {
    expect(await pacesAfter([{ endpoint: 'manual', headers: null }])).toEqual(new Map())
  })
})
