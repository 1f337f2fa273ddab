import { describe, expect, it } from 'vitest'
import { checkDeliveries, checkEvents } from '../../src/doctor/deliveries.js'
import { insertEvents } from '../../src/store/events.js'
import { newEvent } from '../store/events.js'
import { temporaryStore } from '../store/temporary-store.js'

const NOW = Date.UTC(2026, 5, 1, 12)
const DAY = 86_400_000

const ACCESS = { baseUrl: 'https://api.example.com', apiKey: 'sk_live_key', legacy: false }
const NOT_ASKED = { live: null, sandbox: null, hasUnused: false }
const ASKED = { ...NOT_ASKED, live: ACCESS }

describe('of an endpoint that is silent for an unusually long time, the doctor suggests a backfill', () => {
  const endpoints = [
    { name: 'v3', environment: 'live', secrets: [], toleranceSeconds: 300, aheadAtMostMs: DAY } as const,
  ]
  const gap = {
    lastAt: NOW - DAY,
    current: DAY,
    usualInterval: 60_000,
    unusualAfter: 900_000,
    isUnusual: true,
  }
  const todoWith = (provider: typeof ASKED | typeof NOT_ASKED) =>
    checkDeliveries({ endpoints, provider }, new Map([['v3', gap]]))[0]?.todo

  it('where the service may be asked', () => {
    expect(todoWith(ASKED)).toMatch(/; what was missed comes by `latchkey backfill --environment live`$/)
  })

  it('once it may be', () => {
    expect(todoWith(NOT_ASKED)).toMatch(/`latchkey backfill --environment live`, once provider\.live is set$/)
  })
})

describe('of events that have waited for more than a day, the doctor tells', () => {
  async function detailOf(
    reason: 'customer_unknown' | 'source_unknown',
    provider: typeof ASKED | typeof NOT_ASKED,
  ) {
    const db = await temporaryStore()
    const held = newEvent(undefined, { disposition: 'held', reason, receivedAt: NOW - 2 * DAY })
    await db.transaction().execute((trx) => insertEvents(trx, [held]))
    const [finding] = await checkEvents(db, { provider }, NOW)
    return finding
  }

  it('that the service’s records did not help, where it was asked for them', async () => {
    expect(await detailOf('customer_unknown', ASKED)).toMatchObject({
      level: 'warn',
      detail: expect.stringMatching(/, some for more than a day, and the service’s own records did not/),
    })
  })

  it('just that, where nobody asked', async () => {
    const just = { level: 'warn', detail: expect.stringMatching(/, some for more than a day$/) }
    expect(await detailOf('customer_unknown', NOT_ASKED)).toMatchObject(just)
    expect(await detailOf('source_unknown', ASKED)).toMatchObject(just)
  })
})
