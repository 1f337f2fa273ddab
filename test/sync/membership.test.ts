import { describe, expect, it } from 'vitest'
import type { CustomerFacts } from '../../src/provider/facts.js'
import { saveCustomers } from '../../src/store/customers.js'
import {
  loadMemberships,
  type Membership,
  type MembershipKey,
  membershipKey,
} from '../../src/store/memberships.js'
import { loadSyncMarks, markForSync, unmarkForSync } from '../../src/store/sync-state.js'
import {
  type Failed,
  MAY_STILL_COME_MS,
  type MembershipEvent,
  neverDesired,
  transition,
} from '../../src/sync/membership.js'
import { saveDesires, stepMemberships } from '../../src/sync/writes.js'
import { temporaryStore } from '../store/temporary-store.js'

const NOON = Date.UTC(2026, 2, 1, 12)
const KEY: MembershipKey = { environment: 'live', target: 'discord:1:10', accountId: 'a' }

const want = (desired: boolean): MembershipEvent => ({
  kind: 'desired',
  desired,
  customerId: 'cus_1',
  reason: null,
})
const GIVE: MembershipEvent = { kind: 'begin', action: 'give' }
const TAKE: MembershipEvent = { kind: 'begin', action: 'take' }
const GAVE: MembershipEvent = { kind: 'gave' }
const TOOK: MembershipEvent = { kind: 'took' }
const GONE: MembershipEvent = { kind: 'gone' }
const GIVEN = [want(true), GIVE, GAVE]
const TAKING = [...GIVEN, want(false), TAKE]

const FAILURE = { code: 'limited', message: 'Later: much later.' }
const RETRY = { kind: 'retry', at: NOON + 5_000, countsAsAttempt: false } as const
const PARK = { kind: 'park', mayHeal: true } as const
const failed = (then: Failed['next'], wasBegun = true): Failed => ({
  kind: 'failed',
  desired: true,
  failure: FAILURE,
  undo: null,
  wasBegun,
  next: then,
})

/** Each event a millisecond after the one before; null: the last one must not begin. */
function afterwards(events: readonly MembershipEvent[]): Membership | null {
  let membership: Membership | null = neverDesired(KEY, { customerId: 'cus_1' }, NOON)
  for (const [i, event] of events.entries()) {
    membership = membership === null ? null : transition(membership, event, NOON + i)
  }
  return membership
}

/* Whatever happens in whatever order, members are right in the end: `test/sync/any-order.test.ts`. */

describe('a membership', () => {
  it.each<[string, MembershipEvent[], Partial<Membership> | null]>([
    ['that is desired no more is not given', [want(true), want(false), GIVE], null],
    ['that is desired again is not taken', [...GIVEN, want(false), want(true), TAKE], null],
    [
      'whose access ended while it was being given is taken next',
      [want(true), GIVE, want(false), GAVE],
      { desired: false, applied: 'member', given: true, nextAttemptAt: NOON + 3 },
    ],
    [
      'whose access came back while it was being taken is given next',
      [...TAKING, want(true), TOOK],
      { desired: true, applied: 'absent', given: false, nextAttemptAt: NOON + 6 },
    ],
    [
      'of an account that was gone stays given, and nothing is due',
      [...TAKING, GONE],
      { state: 'gone', applied: 'unknown', appliedAt: null, given: true, nextAttemptAt: null },
    ],
    [
      'of an account that was gone is given when it is desired again',
      [...TAKING, GONE, want(true)],
      { applied: 'unknown', given: true, nextAttemptAt: NOON + 6 },
    ],
    [
      'of an account that was gone while access came back is given next',
      [...TAKING, want(true), GONE],
      { desired: true, applied: 'unknown', given: true, nextAttemptAt: NOON + 6 },
    ],
    [
      'is never parked for a failure of what is not desired any more',
      [want(true), GIVE, want(false), failed(PARK)],
      { state: 'due', error: null, nextAttemptAt: NOON + 3 + MAY_STILL_COME_MS },
    ],
    [
      'waits as long as the platform says',
      [want(true), GIVE, failed(RETRY)],
      { state: 'retrying', attempts: 0, error: FAILURE, nextAttemptAt: NOON + 5_000 },
    ],
    [
      'waits as long when access changes meanwhile',
      [...TAKING, { ...failed(RETRY), desired: false }, want(true)],
      { state: 'due', error: null, nextAttemptAt: NOON + 5_000 },
    ],
    [
      'that may still be given is taken only after that',
      [want(true), GIVE, failed(RETRY), want(false)],
      { state: 'due', error: null, nextAttemptAt: NOON + 3 + MAY_STILL_COME_MS },
    ],
  ])('%s', (_what, events, expected) => {
    if (expected === null) expect(afterwards(events)).toBeNull()
    else expect(afterwards(events)).toMatchObject(expected)
  })

  it.each([
    ['took', [TOOK]],
    ['gone', [GONE, want(false)]],
  ])('of somebody who was erased goes once it was %s', async (_how, last) => {
    const db = await temporaryStore()
    const step = async (event: MembershipEvent) => {
      await db.transaction().execute(async (trx) => {
        if (event.kind !== 'desired') return stepMemberships(trx, [{ key: KEY, event }], NOON)
        return saveDesires(trx, { desires: [{ ...KEY, ...event }], cursor: '0.1', marks: [] }, NOON)
      })
      return (await loadMemberships(db, [KEY])).get(membershipKey(KEY))
    }
    for (const event of TAKING) expect(await step(event)).toBeDefined()
    const erasure = { event_id: 'man_1', erased_at: NOON, was_known: 1, finished_at: null } as const
    await db
      .insertInto('erasures')
      .values({ environment: 'live', customer_id: 'cus_1', ...erasure })
      .execute()
    const left = []
    for (const event of last) left.push(await step(event))
    expect(left.at(-1)).toBeUndefined()
  })
})

describe('a mark', () => {
  it('made again since it was read outlasts that it is taken off', async () => {
    const db = await temporaryStore()
    const mark = { environment: 'live', customerId: 'cus_1' } as const
    await db.transaction().execute((trx) => markForSync(trx, [mark]))
    const read = await loadSyncMarks(db, 10)
    await db.transaction().execute((trx) => markForSync(trx, [mark]))
    await db.transaction().execute((trx) => unmarkForSync(trx, read.seqs))
    const again = await loadSyncMarks(db, 10)
    expect(again.marks).toEqual([mark])
    await db.transaction().execute((trx) => unmarkForSync(trx, again.seqs))
    expect((await loadSyncMarks(db, 10)).marks).toEqual([])
  })

  it('with a lower number that is committed later outlasts that those read before are taken off', async () => {
    const db = await temporaryStore()
    const insert = (seq: number, customer_id: string) =>
      db.insertInto('sync_marks').values({ seq, environment: 'live', customer_id }).execute()
    await insert(2, 'cus_2')
    const read = await loadSyncMarks(db, 10)
    await insert(1, 'cus_1')
    await db.transaction().execute((trx) => unmarkForSync(trx, read.seqs))
    expect((await loadSyncMarks(db, 10)).marks).toEqual([{ environment: 'live', customerId: 'cus_1' }])
  })

  it('is made for everybody who gets or loses an account, and who shares the lost one: for nothing else', async () => {
    const db = await temporaryStore()
    const known = (value: string) => ({ value, at: NOON, by: 'evt_1' })
    const markedBy = async (customerId: string, facts: CustomerFacts, before: CustomerFacts = {}) => {
      const customer = { customerId, deletedAt: null }
      const earlier = new Map([[customerId, { ...customer, facts: before }]])
      await db.transaction().execute((trx) => saveCustomers(trx, 'live', earlier, [{ ...customer, facts }]))
      const { marks, seqs } = await loadSyncMarks(db, 10)
      await db.transaction().execute((trx) => unmarkForSync(trx, seqs))
      return marks.map((mark) => mark.customerId)
    }
    const a = { communityId: known('a') }
    expect(await markedBy('cus_1', { email: known('one@example.com') })).toEqual([])
    expect(await markedBy('cus_1', a)).toEqual(['cus_1'])
    expect(await markedBy('cus_2', a)).toEqual(['cus_2'])
    expect(await markedBy('cus_1', { ...a, email: known('one@example.com') }, a)).toEqual([])
    expect(await markedBy('cus_1', { communityId: known('b') }, a)).toEqual(['cus_1', 'cus_2'])
  })
})
