import type { Kysely } from 'kysely'
import { describe, expect, it } from 'vitest'
import type { CustomerFacts } from '../../src/store/customer-facts.js'
import { saveCustomers } from '../../src/store/customers.js'
import { type Happening, type MembershipKey, membershipKey } from '../../src/store/membership.js'
import { loadMemberships, saveDesires, stepMemberships } from '../../src/store/memberships.js'
import type { Database } from '../../src/store/schema.js'
import { loadSyncMarks, markForSync, unmarkForSync } from '../../src/store/sync-state.js'
import { temporaryStore } from './temporary-store.js'

const NOON = Date.UTC(2026, 2, 1, 12)
const KEY: MembershipKey = { environment: 'live', target: 'discord:1:10', accountId: 'a' }

async function membership() {
  const db = await temporaryStore()
  const desire = (desired: boolean, now = NOON) =>
    db
      .transaction()
      .execute((trx) =>
        saveDesires(
          trx,
          { desires: [{ ...KEY, customerId: 'cus_1', desired, reason: null }], cursor: '0.1', marksUpTo: 0 },
          now,
        ),
      )
  const step = async (happening: Happening, now = NOON) =>
    (await db.transaction().execute((trx) => stepMemberships(trx, [{ key: KEY, happening }], now)))[0]
  const stored = async () => (await loadMemberships(db, [KEY])).get(membershipKey(KEY))
  return { db, desire, step, stored }
}

describe('a membership', () => {
  it('is on disk as given, with an outcome that nobody knows, before the call that gives it', async () => {
    const { desire, step, stored } = await membership()
    await desire(true)
    expect(await stored()).toMatchObject({
      desired: true,
      applied: 'unknown',
      given: false,
      nextAttemptAt: NOON,
    })
    expect(await step({ kind: 'begin', action: 'give' })).toBe(true)
    expect(await stored()).toMatchObject({ applied: 'unknown', given: true, nextAttemptAt: NOON })
    await step({ kind: 'gave' })
    expect(await stored()).toMatchObject({ applied: 'member', appliedAt: NOON, nextAttemptAt: null })
  })

  it('that is desired no more is not given, and one that is again is not taken', async () => {
    const { desire, step } = await membership()
    await desire(true)
    await desire(false)
    expect(await step({ kind: 'begin', action: 'give' })).toBe(false)
    await desire(true)
    await step({ kind: 'begin', action: 'give' })
    await step({ kind: 'gave' })
    await desire(false)
    await desire(true)
    expect(await step({ kind: 'begin', action: 'take' })).toBe(false)
  })

  it('that access ended for while it was being given is taken back next', async () => {
    const { desire, step, stored } = await membership()
    await desire(true)
    await step({ kind: 'begin', action: 'give' })
    await desire(false, NOON + 1)
    await step({ kind: 'gave' }, NOON + 2)
    expect(await stored()).toMatchObject({
      desired: false,
      applied: 'member',
      given: true,
      nextAttemptAt: NOON + 2,
    })
  })

  it('whose end was overtaken by new access while it was being taken is given next, and anew', async () => {
    const { desire, step, stored } = await membership()
    await desire(true)
    await step({ kind: 'begin', action: 'give' })
    await step({ kind: 'gave' })
    await desire(false)
    await step({ kind: 'begin', action: 'take' })
    await desire(true, NOON + 1)
    await step({ kind: 'took' }, NOON + 2)
    expect(await stored()).toMatchObject({
      desired: true,
      applied: 'absent',
      given: false,
      nextAttemptAt: NOON + 2,
    })
    await step({ kind: 'begin', action: 'give' })
    expect(await stored()).toMatchObject({ applied: 'unknown', given: true })
  })

  it('of an account that was gone stays given, has nothing due, and is given anew without a look', async () => {
    const { desire, step, stored } = await membership()
    await desire(true)
    await step({ kind: 'begin', action: 'give' })
    await step({ kind: 'gave' })
    await desire(false)
    await step({ kind: 'begin', action: 'take' })
    await step({ kind: 'gone' })
    const gone = {
      state: 'gone',
      desired: false,
      applied: 'unknown',
      appliedAt: null,
      given: true,
      nextAttemptAt: null,
    }
    expect(await stored()).toMatchObject(gone)
    await desire(false, NOON + 1)
    expect(await stored()).toMatchObject(gone)
    await desire(true, NOON + 2)
    expect(await stored()).toMatchObject({ applied: 'unknown', given: true, nextAttemptAt: NOON + 2 })
  })

  it('of an account that was gone while access came back is given next', async () => {
    const { desire, step, stored } = await membership()
    await desire(true)
    await step({ kind: 'begin', action: 'give' })
    await step({ kind: 'gave' })
    await desire(false)
    await step({ kind: 'begin', action: 'take' })
    await desire(true, NOON + 1)
    await step({ kind: 'gone' }, NOON + 2)
    expect(await stored()).toMatchObject({
      desired: true,
      applied: 'unknown',
      given: true,
      nextAttemptAt: NOON + 2,
    })
  })

  it('is never parked for a failure of what is not desired any more', async () => {
    const { desire, step, stored } = await membership()
    await desire(true)
    await step({ kind: 'begin', action: 'give' })
    await desire(false, NOON + 1)
    const failure = { code: 'missing', message: 'Have them join.' }
    const failed = { kind: 'failed', desired: true, failure, undo: null, wasBegun: true } as const
    await step({ ...failed, next: { kind: 'park', mayHeal: true } }, NOON + 2)
    expect(await stored()).toMatchObject({ state: 'due', error: null, nextAttemptAt: NOON + 2 })
  })

  it('keeps a limit that the platform has set when access changes once more', async () => {
    const { desire, step, stored } = await membership()
    await desire(true)
    await step({ kind: 'begin', action: 'give' })
    const failure = { code: 'limited', message: 'Later: much later.' }
    const failed = { kind: 'failed', desired: true, failure, undo: null, wasBegun: true } as const
    await step({ ...failed, next: { kind: 'retry', at: NOON + 5_000, countsAsAttempt: false } })
    expect(await stored()).toMatchObject({
      attempts: 0,
      state: 'retrying',
      error: failure,
      nextAttemptAt: NOON + 5_000,
    })
    await desire(false, NOON + 1)
    expect(await stored()).toMatchObject({ state: 'due', error: null, nextAttemptAt: NOON + 5_000 })
  })

  it('that could not be asked about is asked about again when somebody has it retried', async () => {
    const { desire, step, stored } = await membership()
    await desire(true)
    await step({ kind: 'begin', action: 'give' })
    await step({ kind: 'gave' })
    await step({ kind: 'recheck', before: NOON + 1 }, NOON + 1)
    const failure = { code: 'limited', message: 'Later.' }
    const failed = { kind: 'failed', desired: true, failure, undo: null, wasBegun: false } as const
    for (const next of [
      { kind: 'retry', at: NOON + 5_000, countsAsAttempt: false } as const,
      { kind: 'park', mayHeal: true } as const,
    ]) {
      await step({ ...failed, next }, NOON + 1)
      expect(await stored()).toMatchObject({ error: failure })
      await step({ kind: 'retry' }, NOON + 2)
      expect(await stored()).toMatchObject({ state: 'recheck', error: null, nextAttemptAt: NOON + 2 })
    }
  })

  it.each(['took', 'gone'] as const)(
    'of somebody who was erased goes with a step that says %s',
    async (kind) => {
      const { db, desire, step, stored } = await membership()
      await desire(true)
      await step({ kind: 'begin', action: 'give' })
      await step({ kind: 'gave' })
      await erased(db, 'cus_1')
      await desire(false)
      expect(await stored()).toMatchObject({ desired: false, given: true })
      await step({ kind: 'begin', action: 'take' })
      await step({ kind })
      expect(await stored()).toBeUndefined()
    },
  )

  it('of an account that was gone goes with the erasure of whose it was', async () => {
    const { db, desire, step, stored } = await membership()
    await desire(true)
    await step({ kind: 'begin', action: 'give' })
    await step({ kind: 'gave' })
    await desire(false)
    await step({ kind: 'begin', action: 'take' })
    await step({ kind: 'gone' })
    await erased(db, 'cus_1')
    expect(await stored()).toBeDefined()
    await desire(false)
    expect(await stored()).toBeUndefined()
  })
})

describe('a mark', () => {
  it('made again since it was read outlasts that it is taken off', async () => {
    const db = await temporaryStore()
    const mark = { environment: 'live', customerId: 'cus_1' } as const
    await db.transaction().execute((trx) => markForSync(trx, [mark]))
    const read = await loadSyncMarks(db, 10)
    await db.transaction().execute((trx) => markForSync(trx, [mark]))
    await db.transaction().execute((trx) => unmarkForSync(trx, read.upTo))
    const again = await loadSyncMarks(db, 10)
    expect(again.marks).toEqual([mark])
    await db.transaction().execute((trx) => unmarkForSync(trx, again.upTo))
    expect((await loadSyncMarks(db, 10)).marks).toEqual([])
  })

  it('is made for whoever gets or loses an account, and for whoever shares the lost one: for nothing else', async () => {
    const db = await temporaryStore()
    const known = (value: string) => ({ value, at: NOON, by: 'evt_1' })
    const save = (customerId: string, facts: CustomerFacts, before: CustomerFacts = {}) =>
      db
        .transaction()
        .execute((trx) =>
          saveCustomers(
            trx,
            'live',
            new Map([[customerId, { customerId, facts: before, deletedAt: null }]]),
            [{ customerId, facts, deletedAt: null }],
          ),
        )
    const marked = async () => {
      const { marks, upTo } = await loadSyncMarks(db, 10)
      await db.transaction().execute((trx) => unmarkForSync(trx, upTo))
      return marks.map(({ customerId }) => customerId)
    }
    const a = { communityId: known('a') }
    await save('cus_1', { email: known('one@example.com') })
    expect(await marked()).toEqual([])
    await save('cus_1', a)
    await save('cus_2', a)
    expect(await marked()).toEqual(['cus_1', 'cus_2'])
    await save('cus_1', { ...a, email: known('one@example.com') }, a)
    expect(await marked()).toEqual([])
    await save('cus_1', { communityId: known('b') }, a)
    expect(await marked()).toEqual(['cus_1', 'cus_2'])
  })
})

async function erased(db: Kysely<Database>, customerId: string): Promise<void> {
  await db
    .insertInto('erasures')
    .values({
      environment: 'live',
      customer_id: customerId,
      event_id: 'man_1',
      erased_at: NOON,
      was_known: 1,
      finished_at: null,
    })
    .execute()
}
