import { expect, it } from 'vitest'
import { compareBodies } from '../../src/store/damaged-rows.js'
import { paymentEvent } from '../entitlements/events.js'
import { alterBody } from '../setup/alter-body.js'
import { deliverAgain, newEvent, numberedEvents, storeOf } from './events.js'

it('compares every body once, other ones under an id too, counts what was altered and names the first', async () => {
  // More events, and more other bodies under the id of one of them, than are looked at at once.
  const db = await storeOf(numberedEvents(40))
  const bodies = Array.from({ length: 40 }, (_, i) =>
    newEvent(paymentEvent({ id: 'evt_7' }), { body: `${i}` }),
  )
  await deliverAgain(db, ...bodies, newEvent(paymentEvent({ id: 'evt_8' }), { body: 'another one' }))
  expect(await compareBodies(db)).toEqual({ read: 81, damaged: 0, first: [] })
  await alterBody(db, 'evt_8', 'no more', 'event_conflicts')
  expect(await compareBodies(db)).toEqual({ read: 81, damaged: 1, first: ['evt_8 in live'] })
  await alterBody(db, 'evt_39', null)
  await alterBody(db, 'evt_20', '{}')
  const first = ['evt_20 in live', 'evt_39 in live', 'evt_8 in live']
  expect(await compareBodies(db)).toMatchObject({ damaged: 3, first })
})

it('passes over what was removed or rewritten, and ends in an empty store', async () => {
  const removed = { why: 'redacted', at: 0, bytes: 9 } as const
  const db = await storeOf(numberedEvents(20).map((one) => ({ ...one, body: Buffer.from('{}'), removed })))
  expect(await compareBodies(db)).toEqual({ read: 0, damaged: 0, first: [] })
  expect(await compareBodies(await storeOf([]))).toMatchObject({ read: 0 })
})
