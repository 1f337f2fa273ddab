import type { Kysely } from 'kysely'
import { expect, it } from 'vitest'
import { compareBodies } from '../../src/store/damaged-rows.js'
import type { Database } from '../../src/store/schema.js'
import { alterBody } from '../setup/alter-body.js'
import { newEvent, paymentEvent } from './sample-events.js'
import { deliverAgain, numberedEvents, storeOf } from './stored-events.js'

/** More events, and more other bodies under the id of one of them, than are looked at at once. */
async function largeStore(): Promise<Kysely<Database>> {
  const db = await storeOf(numberedEvents(40))
  for (let i = 0; i < 40; i += 1) {
    await deliverAgain(db, newEvent(paymentEvent({ id: 'evt_7' }), { body: `${i}` }))
  }
  await deliverAgain(db, newEvent(paymentEvent({ id: 'evt_8' }), { body: 'another one' }))
  return db
}

it('compares every body once, and finds all as they came', async () => {
  expect(await compareBodies(await largeStore())).toEqual({ read: 81, damaged: 0, first: [] })
})

it('counts what was altered, among the other bodies under an id too, and names the first', async () => {
  const db = await largeStore()
  await alterBody(db, 'evt_8', 'no more', 'event_conflicts')
  expect(await compareBodies(db)).toEqual({ read: 81, damaged: 1, first: ['evt_8 in live'] })
  await alterBody(db, 'evt_39', null)
  await alterBody(db, 'evt_20', '{}')
  expect(await compareBodies(db)).toMatchObject({
    damaged: 3,
    first: ['evt_20 in live', 'evt_39 in live', 'evt_8 in live'],
  })
})

it('passes over what was removed or rewritten, and ends in an empty store', async () => {
  const removed = { why: 'redacted', at: 0, bytes: 9 } as const
  const db = await storeOf(numberedEvents(20).map((one) => ({ ...one, body: Buffer.from('{}'), removed })))
  expect(await compareBodies(db)).toEqual({ read: 0, damaged: 0, first: [] })
  expect(await compareBodies(await storeOf([]))).toMatchObject({ read: 0 })
})
