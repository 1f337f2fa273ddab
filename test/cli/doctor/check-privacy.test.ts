import { describe, expect, it } from 'vitest'
import { checkPrivacy } from '../../../src/cli/doctor/check-privacy.js'
import { saveErasure, saveFinished } from '../../../src/store/erasures.js'
import { insertEvents } from '../../../src/store/events.js'
import { paymentEvent } from '../../entitlements/events.js'
import { newEvent } from '../../store/sample-events.js'
import { temporaryStore } from '../../store/temporary-store.js'

const NOW = Date.UTC(2026, 2, 1, 12)
const HOUR = 3_600_000
const DAY = 24 * HOUR
const RETENTION = { retention: { bodiesAfterMs: 180 * DAY } }

/** A store with one event of some age, and one erasure. */
async function storeWith({ eventAge = 0, erasureAge = 0, isFinished = false }) {
  const db = await temporaryStore()
  const receivedAt = NOW - eventAge
  await db.transaction().execute(async (trx) => {
    await insertEvents(trx, [
      newEvent(paymentEvent({ type: 'payment.authorized', paymentId: 'pay_1', createdAt: receivedAt }), {
        receivedAt,
      }),
    ])
    const erased = { environment: 'live', customerId: 'cus_1' } as const
    await saveErasure(trx, {
      ...erased,
      eventId: 'man_1',
      erasedAt: NOW - erasureAge,
      knownBy: [],
      sweepEnd: 1,
    })
    if (isFinished) await saveFinished(trx, [erased], NOW)
  })
  return db
}

describe('the doctor', () => {
  it('finds nothing wrong where nothing is stored', async () => {
    expect(await checkPrivacy(await temporaryStore(), RETENTION, NOW)).toMatchObject([
      { level: 'ok', what: 'erasures' },
      { level: 'ok', what: 'bodies', detail: 'none' },
    ])
  })

  it.each([
    ['begun just now', { erasureAge: HOUR }, 'ok'],
    ['finished', { erasureAge: 9 * HOUR, isFinished: true }, 'ok'],
    ['begun long ago', { erasureAge: HOUR + 1 }, 'warn'],
  ])('looks at an erasure %s', async (_when, told, level) => {
    const [erasures] = await checkPrivacy(await storeWith(told), RETENTION, NOW)
    expect(erasures).toMatchObject({ level, what: 'erasures' })
  })

  it.each([
    ['younger than they are kept', 179 * DAY, RETENTION, 'ok'],
    ['due since less than a day', 181 * DAY, RETENTION, 'ok'],
    ['older than that', 181 * DAY + 1, RETENTION, 'warn'],
    ['of any age, where they are kept for ever', 999 * DAY, { retention: null }, 'ok'],
  ])('looks at bodies %s', async (_how, eventAge, config, level) => {
    const [, bodies] = await checkPrivacy(await storeWith({ eventAge }), config, NOW)
    expect(bodies).toMatchObject({ level, what: 'bodies' })
  })
})
