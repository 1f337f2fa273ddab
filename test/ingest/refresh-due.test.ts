import type { Kysely } from 'kysely'
import { expect, it } from 'vitest'
import { DOCUMENTED_POLICY } from '../../src/entitlements/policy.js'
import { createBatchWriter } from '../../src/ingest/commit.js'
import { refreshDue } from '../../src/ingest/settle.js'
import { loadChanges } from '../../src/store/changes.js'
import type { Database } from '../../src/store/schema.js'
import { temporaryStore } from '../store/temporary-store.js'
import { deliveryOf } from './wire.js'

const CREATED = Date.parse('2026-03-28T23:30:00Z')

/** A customer whose access ends by the clock, and the clock to move. */
async function endingAt(expiresAt: string) {
  const db = await temporaryStore()
  let now = CREATED
  const clock = () => now
  const data = {
    id: 'sub_1',
    customer: { id: 'cus_1' },
    product: { id: 'pro_1' },
    cancel_at_period_end: true,
    expires_at: expiresAt,
  }
  const event = (id: string, type: string, at: number) =>
    deliveryOf(JSON.stringify({ id, type, createdAt: new Date(CREATED + at).toISOString(), data }))
  const write = createBatchWriter({ db, policy: () => DOCUMENTED_POLICY, clock })
  await write([event('evt_1', 'subscription.created', 0), event('evt_2', 'subscription.canceled', 1)])
  return {
    db,
    refreshAt: (at: number) => {
      now = at
      return refreshDue(db, clock)
    },
  }
}

async function byTheClock(db: Kysely<Database>) {
  const changes = await loadChanges(db, 'live', 0, 100)
  return changes
    .filter(({ cause }) => cause.kind === 'clock')
    .map(({ at, after }) => ({ at, status: after.status }))
}

it('an end is written down once, neither before nor twice', async () => {
  const { db, refreshAt } = await endingAt('2026-03-29T02:30:00+01:00')
  const end = Date.parse('2026-03-29T01:30:00Z')
  expect(await refreshAt(end - 1)).toBe(0)
  expect(await byTheClock(db)).toEqual([])
  expect(await refreshAt(end)).toBe(1)
  expect(await refreshAt(end)).toBe(0)
  expect(await byTheClock(db)).toEqual([{ at: end, status: 'canceled' }])
})

it('an end that passed while the machine slept is caught up, and a clock that steps back takes nothing back', async () => {
  const { db, refreshAt } = await endingAt('2026-04-30T00:00:00Z')
  const woken = Date.parse('2026-08-01T00:00:00Z')
  expect(await refreshAt(woken)).toBe(1)
  expect(await refreshAt(Date.parse('2026-04-29T00:00:00Z'))).toBe(0)
  expect(await refreshAt(woken + 1)).toBe(0)
  expect(await byTheClock(db)).toEqual([{ at: woken, status: 'canceled' }])
})
