import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { QUARANTINE_REASONS } from '../../src/provider/event.js'
import { createEventBodyReader } from '../../src/store/event-body-reader.js'
import { createEventPageReader } from '../../src/store/event-page-reader.js'
import { createEventReader } from '../../src/store/event-reader.js'
import { alterBody } from '../setup/alter-body.js'
import { NOON, newEvent, paymentEvent } from './sample-events.js'
import { deliverAgain, everyEvent, quarantined, storeOf } from './stored-events.js'

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

  it('have the hash of what is left where a body was rewritten, and are found by that one too', async () => {
    const left = Buffer.from('{"left":"of it"}')
    const removed = { why: 'redacted', at: NOON + 5_000 } as const
    const { bodySha256: sha256, body } = EVENT
    const bytes = body?.length ?? 0
    const db = await storeOf([{ ...EVENT, body: left, removed: { ...removed, bytes } }])
    const leftSha256 = createHash('sha256').update(left).digest('hex')
    const given = { sha256: leftSha256, bytes: left, removed }
    for (const asked of [null, sha256, leftSha256]) {
      expect(await createEventBodyReader(db)({ ...ABOUT, sha256: asked })).toEqual(given)
    }
    const told = {
      bodySha256: leftSha256,
      bodyBytes: left.length,
      bodyRemoved: { ...removed, sha256, bytes },
    }
    expect(await createEventReader(db)(ABOUT)).toMatchObject(told)
    const readPage = createEventPageReader(db)
    const { items } = await readPage({ filter: everyEvent(), before: null, limit: 1 })
    expect(items).toMatchObject([told])
  })

  it.each(['{"altered":"body"}', null])(
    'are not given where they are not the ones that came: %s',
    async (body) => {
      const db = await storeOf([EVENT])
      await alterBody(db, 'evt_1', body)
      await expect(createEventBodyReader(db)({ ...ABOUT, sha256: null })).rejects.toMatchObject({
        code: 'body_altered',
        message: expect.stringContaining('evt_1'),
      })
    },
  )

  it('are none for an unknown event, and for a hash that never came under its id', async () => {
    const read = createEventBodyReader(await storeOf([EVENT, quarantined('?')]))
    expect(await read({ ...ABOUT, eventId: 'evt_2', sha256: null })).toBe(null)
    expect(await read({ ...ABOUT, environment: 'sandbox', sha256: null })).toBe(null)
    expect(await read({ ...ABOUT, sha256: quarantined('?').bodySha256 })).toBe(null)
  })
})
