import { describe, expect, it } from 'vitest'
import { loadPaces, recordArrivals } from '../../src/store/deliveries.js'
import {
  deleteEntitlements,
  loadDue,
  loadEntitlements,
  saveEntitlements,
} from '../../src/store/entitlements.js'
import { compareBodies } from '../../src/store/event-questions.js'
import { insertEvents, type NewEvent, setDispositions } from '../../src/store/events.js'
import { paymentEvent } from '../entitlements/events.js'
import { alterBody } from '../setup/alter-body.js'
import { deliverAgain, NOON, newEvent, numberedEvents, storeOf } from './events.js'
import { temporaryStore } from './temporary-store.js'

const FIRST = newEvent()

it('an id is never stored twice in one environment, nor then anything that came with it', async () => {
  const db = await storeOf([FIRST, { ...FIRST, environment: 'sandbox' }])
  const insert = (events: readonly NewEvent[]) => db.transaction().execute((trx) => insertEvents(trx, events))
  const another = newEvent(paymentEvent({ id: 'evt_3' }))
  await expect(insert([another, { ...FIRST, endpoint: 'other' }])).rejects.toMatchObject({
    code: 'SQLITE_CONSTRAINT_UNIQUE',
  })
  expect(await db.selectFrom('events').select(['event_id', 'endpoint']).execute()).toEqual([
    { event_id: 'evt_1', endpoint: 'v3' },
    { event_id: 'evt_1', endpoint: 'v3' },
  ])
})

describe('a delivery of an event that is stored', () => {
  it('moves the last receipt forward only', async () => {
    const db = await storeOf([FIRST])
    const again = (receivedAt: number) => ({ ...FIRST, receivedAt })
    expect(await deliverAgain(db, again(NOON + 9_000), again(NOON + 5_000))).toEqual([])
    await deliverAgain(db, again(NOON))
    expect(await db.selectFrom('events').select(['deliveries', 'last_received_at']).execute()).toEqual([
      { deliveries: 4, last_received_at: NOON + 9_000 },
    ])
  })
})

describe('more rows than one statement can bind', () => {
  it('may be events', async () => {
    const ids = Array.from({ length: 17_000 }, (_, index) => `evt_${index}`)
    const db = await storeOf(ids.map((id) => ({ ...FIRST, eventId: id, source: { kind: 'payment', id } })))
    const held = { disposition: 'held', reason: 'customer_unknown' } as const
    const all = ids.map((eventId) => ({ eventId, ...held }))
    await db.transaction().execute((trx) => setDispositions(trx, 'live', all))
    const waiting = await db.selectFrom('events').select('seq').where('disposition', '=', 'held').execute()
    expect(waiting).toHaveLength(ids.length)
  })

  it('may be entitlements', async () => {
    const db = await temporaryStore()
    const active = { active: true, status: 'active', since: NOON, until: null, nextChangeAt: null } as const
    const ids = Array.from({ length: 33_000 }, (_, index) => `cus_${index}`)
    const records = ids.map((customerId) => ({ customerId, productId: 'pro_1', ...active }))
    await db.transaction().execute((trx) => saveEntitlements(trx, 'live', records))
    expect([...(await loadEntitlements(db, 'live', ids)).values()].flat()).toEqual(records)
    await db.transaction().execute((trx) => deleteEntitlements(trx, 'live', records))
    expect([...(await loadEntitlements(db, 'live', ids)).values()].flat()).toEqual([])
  })
})

it('entitlements are due from the instant at which the clock changes them, the longest overdue first', async () => {
  const db = await temporaryStore()
  const due = (productId: string, nextChangeAt: number | null) => {
    const access = { active: true, status: 'ending', since: NOON, until: nextChangeAt } as const
    return { customerId: 'cus_1', productId, ...access, nextChangeAt }
  }
  await db.transaction().execute(async (trx) => {
    await saveEntitlements(trx, 'live', [due('never', null), due('now', NOON), due('later', NOON + 1)])
    await saveEntitlements(trx, 'sandbox', [due('before', NOON - 1)])
  })
  expect((await loadDue(db, NOON, 10)).map(({ productId }) => productId)).toEqual(['before', 'now'])
  expect(await loadDue(db, NOON, 1)).toHaveLength(1)
})

it('every body is compared once, other ones under an id too: what was altered is counted, the first is named', async () => {
  // More events, and more other bodies under the id of one of them, than are looked at at once.
  const db = await storeOf(numberedEvents(40))
  const bodies = Array.from({ length: 40 }, (_, i) =>
    newEvent(paymentEvent({ id: 'evt_7' }), { body: `${i}` }),
  )
  await deliverAgain(db, ...bodies, newEvent(paymentEvent({ id: 'evt_8' }), { body: 'another one' }))
  expect(await compareBodies(db)).toEqual({ read: 81, altered: 0, first: null })
  await alterBody(db, 'evt_8', 'no more', 'event_conflicts')
  expect(await compareBodies(db)).toEqual({ read: 81, altered: 1, first: 'evt_8 in live' })
  await alterBody(db, 'evt_39', null)
  await alterBody(db, 'evt_20', '{}')
  expect(await compareBodies(db)).toMatchObject({ altered: 3, first: 'evt_20 in live' })
})

it('a body that was removed or rewritten is not compared', async () => {
  const removed = { why: 'redacted', at: 0, bytes: 9 } as const
  const db = await storeOf(numberedEvents(20).map((one) => ({ ...one, body: Buffer.from('{}'), removed })))
  expect(await compareBodies(db)).toEqual({ read: 0, altered: 0, first: null })
})

const MINUTE = 60_000

/** The paces after these came, a transaction for each batch. */
async function pacesAfter(...batches: readonly (readonly Partial<Omit<NewEvent, 'body'>>[])[]) {
  const db = await temporaryStore()
  for (const batch of batches) {
    const arrived = batch.map((one) => newEvent(undefined, one))
    await db.transaction().execute(async (trx) => recordArrivals(trx, arrived, await loadPaces(trx)))
  }
  return loadPaces(db)
}

describe('the pace of deliveries', () => {
  it('is the same of one batch as of many', async () => {
    const times = [0, 3, 4, 9, 20].map((minutes) => ({ receivedAt: NOON + minutes * MINUTE }))
    expect(await pacesAfter(times)).toEqual(await pacesAfter(...times.map((time) => [time])))
  })

  it('takes no act by hand for a delivery', async () => {
    expect(await pacesAfter([{ endpoint: 'manual', headers: null }])).toEqual(new Map())
  })
})
