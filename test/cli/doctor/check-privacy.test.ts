import { describe, expect, it } from 'vitest'
import { checkPrivacy } from '../../../src/cli/doctor/check-privacy.js'
import { dropBodies } from '../../../src/history/retention.js'
import { saveErasure } from '../../../src/store/erasures.js'
import { insertEvents } from '../../../src/store/events.js'
import { firstKeptBodyAt } from '../../../src/store/expire-bodies.js'
import { saveFinished } from '../../../src/store/unfinished-erasures.js'
import { paymentEvent } from '../../entitlements/events.js'
import { newEvent } from '../../store/sample-events.js'
import { temporaryStore } from '../../store/temporary-store.js'

const NOW = Date.UTC(2026, 2, 1, 12)
const HOUR = 3_600_000
const DAY = 24 * HOUR
const RETENTION = { retention: { bodiesAfterMs: 180 * DAY } }

/** A store with one event of some age, and one erasure. */
interface Told {
  readonly eventAge?: number
  readonly erasureAge?: number
  readonly isFinished?: boolean
  readonly disposition?: 'applied' | 'held'
}

async function storeWith({
  eventAge = 0,
  erasureAge = 0,
  isFinished = false,
  disposition = 'applied',
}: Told = {}) {
  const db = await temporaryStore()
  const receivedAt = NOW - eventAge
  await db.transaction().execute(async (trx) => {
    await insertEvents(trx, [
      newEvent(paymentEvent({ type: 'payment.authorized', paymentId: 'pay_1', createdAt: receivedAt }), {
        receivedAt,
        disposition,
      }),
    ])
    const erased = { environment: 'live', customerId: 'cus_1' } as const
    await saveErasure(trx, {
      ...erased,
      eventId: 'man_1',
      erasedAt: NOW - erasureAge,
      wasKnown: true,
      knownBy: [],
      fingerprints: { key: 'k', known: [] },
      sweepEnd: 1,
    })
    if (isFinished) await saveFinished(trx, [erased], NOW)
  })
  return db
}

describe('the doctor', () => {
  it('finds nothing wrong where nothing is stored', async () => {
    expect(await checkPrivacy(await temporaryStore(), RETENTION, true, NOW)).toMatchObject([
      { level: 'ok', what: 'erasures' },
      { level: 'ok', what: 'bodies', detail: 'none' },
    ])
  })

  it.each([
    ['begun just now', { erasureAge: HOUR }, 'ok'],
    ['finished', { erasureAge: 9 * HOUR, isFinished: true }, 'ok'],
    ['begun long ago', { erasureAge: HOUR + 1 }, 'warn'],
  ])('looks at an erasure %s', async (_when, told, level) => {
    const [erasures] = await checkPrivacy(await storeWith(told), RETENTION, true, NOW)
    expect(erasures).toMatchObject({ level, what: 'erasures' })
  })

  it.each([
    ['begun just now', { erasureAge: 0 }, 'warn'],
    ['begun long ago', { erasureAge: 9 * HOUR }, 'warn'],
    ['finished', { isFinished: true }, 'ok'],
  ])('looks at an erasure %s, on which nobody works', async (_when, told, level) => {
    const [erasures] = await checkPrivacy(await storeWith(told), RETENTION, false, NOW)
    expect(erasures).toMatchObject({ level, what: 'erasures' })
  })

  it('says how many erasures wait for somebody to work on them, and how', async () => {
    expect(await checkPrivacy(await storeWith(), RETENTION, false, NOW)).toContainEqual({
      level: 'warn',
      what: 'erasures',
      detail: '1 erasure not finished, and nothing works on it',
      todo: 'start the daemon, or give `latchkey erase` again',
    })
  })

  it.each([
    ['younger than they are kept', 179 * DAY, RETENTION, 'ok'],
    ['due since less than a day', 181 * DAY, RETENTION, 'ok'],
    ['older than that', 181 * DAY + 1, RETENTION, 'warn'],
    ['of any age, where they are kept for ever', 999 * DAY, { retention: null }, 'ok'],
  ])('looks at bodies %s', async (_how, eventAge, config, level) => {
    const [, bodies] = await checkPrivacy(await storeWith({ eventAge }), config, true, NOW)
    expect(bodies).toMatchObject({ level, what: 'bodies' })
  })

  it.each([
    [RETENTION, 'the oldest came 400d ago, the next to go 5d ago; they go after 180d'],
    [{ retention: null }, 'the oldest came 400d ago; they are kept for ever'],
  ])(
    'tells the oldest body, also of one that was imported after a younger one came',
    async (config, detail) => {
      const db = await storeWith({ eventAge: 5 * DAY })
      const receivedAt = NOW - 400 * DAY
      const imported = paymentEvent({ type: 'payment.succeeded', paymentId: 'pay_0', createdAt: receivedAt })
      await db.transaction().execute((trx) => insertEvents(trx, [newEvent(imported, { receivedAt })]))
      const [, bodies] = await checkPrivacy(db, config, true, NOW)
      expect(bodies).toMatchObject({ level: 'ok', what: 'bodies', detail })
      expect(await firstKeptBodyAt(db)).toBe(NOW - 5 * DAY)
    },
  )

  it('tells of bodies that are kept beyond their age, since their events wait', async () => {
    const db = await storeWith({ eventAge: 200 * DAY, disposition: 'held' })
    await dropBodies(db, NOW - RETENTION.retention.bodiesAfterMs, NOW)
    expect((await checkPrivacy(db, RETENTION, true, NOW))[2]).toMatchObject({
      level: 'warn',
      what: 'kept bodies',
      detail: '1 event older than that held or quarantined, the oldest for 200d',
    })
    expect(await checkPrivacy(db, { retention: null }, true, NOW)).toHaveLength(2)
    expect(await firstKeptBodyAt(db)).toBe(NOW - 200 * DAY)
  })
})
