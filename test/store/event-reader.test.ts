import { describe, expect, it } from 'vitest'
import { QUARANTINE_REASONS } from '../../src/provider/event.js'
import { createEventBodyReader } from '../../src/store/event-body-reader.js'
import { createEventReader } from '../../src/store/event-reader.js'
import { NOON, newEvent, paymentEvent } from './sample-events.js'
import { deliverAgain, quarantined, storeOf } from './stored-events.js'

const EVENT = newEvent(paymentEvent())
const OTHER = newEvent(paymentEvent(), { body: '{"other":"body"}', endpoint: 'v2', receivedAt: NOON + 9_000 })
const ABOUT = { environment: 'live', eventId: 'evt_1' } as const

describe('one stored event', () => {
  it('tells what it says, its headers, and each other body under its id', async () => {
    const db = await storeOf([EVENT])
    await deliverAgain(db, OTHER)
    await deliverAgain(db, OTHER)
    expect(await createEventReader(db)(ABOUT)).toMatchObject({
      id: 'evt_1',
      disposition: 'applied',
      reasonText: null,
      deliveries: 3,
      conflicts: 1,
      normalized: paymentEvent(),
      headers: EVENT.headers,
      otherBodies: [
        { sha256: OTHER.bodySha256, bytes: 16, endpoint: 'v2', receivedAt: NOON + 9_000, deliveries: 2 },
      ],
    })
  })

  it('counts all other bodies, and tells of the first hundred', async () => {
    const db = await storeOf([EVENT])
    for (let i = 0; i < 103; i += 1) {
      await deliverAgain(db, newEvent(paymentEvent(), { body: `${i}`, receivedAt: NOON + i }))
    }
    const event = await createEventReader(db)(ABOUT)
    expect(event?.conflicts).toBe(103)
    expect(event?.otherBodies.map(({ receivedAt }) => receivedAt - NOON)).toEqual([...Array(100).keys()])
  })

  it('tells in words what a held one waits for', async () => {
    const db = await storeOf([{ ...EVENT, disposition: 'held', reason: 'customer_unknown' }])
    expect(await createEventReader(db)(ABOUT)).toMatchObject({
      reason: 'customer_unknown',
      reasonText: 'waits until an event tells whose it is',
    })
  })

  it.each(QUARANTINE_REASONS)('tells in words why a quarantined one can not be used: %s', async (reason) => {
    const event = quarantined('?', { reason })
    const read = createEventReader(await storeOf([event]))
    expect(await read({ environment: 'live', eventId: event.eventId })).toMatchObject({
      normalized: null,
      reasonText: expect.stringMatching(/^can not be used, since .+/),
    })
  })

  it('is none where the id is unknown, or stored in the other environment only', async () => {
    const read = createEventReader(await storeOf([EVENT]))
    expect(await read({ environment: 'live', eventId: 'evt_2' })).toBe(null)
    expect(await read({ environment: 'sandbox', eventId: 'evt_1' })).toBe(null)
  })
})

describe('the bytes of an event', () => {
  it('are those that stand, or those of the hash that is asked for', async () => {
    const db = await storeOf([EVENT])
    await deliverAgain(db, OTHER)
    const read = createEventBodyReader(db)
    const standing = { sha256: EVENT.bodySha256, bytes: EVENT.body, removed: null }
    expect(await read({ ...ABOUT, sha256: null })).toEqual(standing)
    expect(await read({ ...ABOUT, sha256: EVENT.bodySha256 })).toEqual(standing)
    expect(await read({ ...ABOUT, sha256: OTHER.bodySha256 })).toEqual({
      sha256: OTHER.bodySha256,
      bytes: OTHER.body,
      removed: null,
    })
  })

  it('are none for an unknown event, and for a hash that never came under its id', async () => {
    const read = createEventBodyReader(await storeOf([EVENT, quarantined('?')]))
    expect(await read({ ...ABOUT, eventId: 'evt_2', sha256: null })).toBe(null)
    expect(await read({ ...ABOUT, environment: 'sandbox', sha256: null })).toBe(null)
    expect(await read({ ...ABOUT, sha256: quarantined('?').bodySha256 })).toBe(null)
  })
})
