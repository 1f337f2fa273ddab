import { describe, expect, it } from 'vitest'
import type { AccessSnapshot, EntitlementStatus } from '../../src/entitlements/model.js'
import { periodsIn, summarizeChanges } from '../../src/store/change-summary.js'
import { appendChanges } from '../../src/store/changes.js'
import { saveEntitlements } from '../../src/store/entitlements.js'
import { emptyStores } from './temporary-store.js'

const DAY = 86_400_000
const MONDAY = Date.UTC(2026, 0, 5)

const iso = (instants: readonly number[]) => instants.map((one) => new Date(one).toISOString().slice(0, 10))

describe('periods', () => {
  it('are whole days, or weeks from Monday on, that the time touches', () => {
    const noon = Date.UTC(2026, 0, 1, 12)
    expect(iso(periodsIn(noon, noon + 2 * DAY, 'day'))).toEqual(['2026-01-01', '2026-01-02', '2026-01-03'])
    expect(iso(periodsIn(MONDAY, MONDAY + DAY, 'day'))).toEqual(['2026-01-05'])
    expect(iso(periodsIn(noon, MONDAY, 'week'))).toEqual(['2025-12-29'])
    expect(iso(periodsIn(noon, MONDAY + 1, 'week'))).toEqual(['2025-12-29', '2026-01-05'])
    expect(iso(periodsIn(MONDAY - 1, MONDAY, 'week'))).toEqual(['2025-12-29'])
    expect(iso(periodsIn(Date.UTC(1969, 11, 31, 23), 1, 'week'))).toEqual(['1969-12-29'])
    expect(periodsIn(MONDAY, MONDAY, 'week')).toEqual([])
  })
})

/** Every change that a walk through some days makes, as ingest writes them; `random` is from 0 up to 1. */
async function history(days: number, random: () => number) {
  const [db] = await emptyStores(1)
  if (db === undefined) throw new Error('no store was opened')
  const reasons: readonly EntitlementStatus[] = ['refunded', 'expired', 'blocked', 'none']
  const written: { at: number; productId: string; gain: boolean; status: EntitlementStatus }[] = []
  const active = new Map<string, boolean>()
  await db.transaction().execute(async (trx) => {
    for (let at = MONDAY; at < MONDAY + days * DAY; at += 3 * 3_600_000) {
      const [customerId, productId] = [`cus_${Math.floor(random() * 5)}`, random() < 0.5 ? 'pro_1' : 'pro_2']
      const key = `${customerId} ${productId}`
      const was = active.get(key) ?? false
      // Some changes are neither gains nor losses.
      const is = random() < 0.2 ? was : !was
      const status = is ? 'active' : (reasons[Math.floor(random() * reasons.length)] ?? 'none')
      const shown = (isActive: boolean): AccessSnapshot => {
        return { active: isActive, status: isActive ? 'active' : status, since: null, until: null }
      }
      active.set(key, is)
      for (const environment of ['live', 'sandbox'] as const) {
        const who = { environment, customerId, productId }
        const cause = { kind: 'clock', eventId: null } as const
        // What is of another environment counts nowhere.
        const [before, after] = environment === 'live' ? [was, is] : [false, true]
        await appendChanges(trx, [{ ...who, at, before: shown(before), after: shown(after), cause }])
      }
      await saveEntitlements(trx, 'live', [{ customerId, productId, ...shown(is), nextChangeAt: null }])
      if (was !== is) written.push({ at, productId, gain: is, status })
    }
  })
  return { db, written }
}

describe('the numbers of a stretch of time', () => {
  it.each([
    ['day', undefined],
    ['week', undefined],
    ['week', 'pro_2'],
  ] as const)('by %s, of product %s, are those of each change, and add up', async (by, productId) => {
    let seed = 7
    const random = () => {
      seed = (seed * 16_807) % 2_147_483_647
      return seed / 2_147_483_647
    }
    const { db, written } = await history(30, random)
    // Neither the first changes nor the last.
    const periods = periodsIn(MONDAY + 5 * DAY, MONDAY + 20 * DAY, by)
    const own = written.filter((one) => productId === undefined || one.productId === productId)
    const summary = await summarizeChanges(db, { environment: 'live', productId, periods, by })
    expect(summary.map(({ from }) => from)).toEqual(periods)
    for (const { from, to, gained, lost, lostBy, active } of summary) {
      const within = own.filter(({ at }) => at >= from && at < to)
      const losses = within.filter(({ gain }) => !gain)
      const before = own.filter(({ at }) => at < to)
      expect({ gained, lost, lostBy, active }).toEqual({
        gained: within.length - losses.length,
        lost: losses.length,
        lostBy: Object.fromEntries(
          [...Map.groupBy(losses, ({ status }) => status)].map(([status, some]) => [status, some.length]),
        ),
        active: before.filter(({ gain }) => gain).length - before.filter(({ gain }) => !gain).length,
      })
    }
    expect(summary.reduce((sum, { lost }) => sum + lost, 0)).toBeGreaterThan(5)
    await db.destroy()
  })
})
