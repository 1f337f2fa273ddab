import { describe, expect, it } from 'vitest'
import type { DerivedSource } from '../../src/entitlements/derive.js'
import type { SourceState } from '../../src/entitlements/model.js'
import {
  type AccessSnapshot,
  appendChanges,
  latestCursor,
  loadChanges,
  type NewChange,
} from '../../src/store/changes.js'
import {
  deleteEntitlements,
  type EntitlementRecord,
  loadDue,
  loadEntitlements,
  saveEntitlements,
} from '../../src/store/entitlements.js'
import { getSetting, setSetting } from '../../src/store/settings.js'
import {
  deleteSources,
  loadSources,
  loadSourcesOfCustomers,
  replaceSources,
} from '../../src/store/sources.js'
import { NOON } from './sample-events.js'
import { temporaryStore } from './temporary-store.js'

const NONE: AccessSnapshot = { active: false, status: 'none', since: null, until: null }
const ACTIVE: AccessSnapshot = { active: true, status: 'active', since: NOON, until: null }

function source(told: Partial<SourceState> = {}): SourceState {
  return {
    kind: 'subscription',
    id: 'sub_1',
    customerId: 'cus_1',
    rail: 'card',
    intervals: [{ productId: 'pro_1', from: NOON, until: null, reason: null, eventId: 'evt_1' }],
    pastDueSince: null,
    cancelAtPeriodEnd: true,
    periodEnd: NOON + 5,
    providerStatus: 'active',
    newestAt: NOON,
    cyclesWithoutPayment: 0,
    held: { evt_2: 'product_unknown' },
    ...told,
  }
}

/** With a history that differs by kind and customer, so that none is taken for another. */
function folded(state: SourceState): DerivedSource {
  return { state, history: `1\n${state.kind} of ${state.customerId}` }
}

function entitlement(told: Partial<EntitlementRecord> = {}): EntitlementRecord {
  return { customerId: 'cus_1', productId: 'pro_1', ...ACTIVE, nextChangeAt: null, ...told }
}

describe('saved sources', () => {
  it('come back as they were, the newest state of each, by kind and id', async () => {
    const db = await temporaryStore()
    const [subscription, payment] = [source(), source({ kind: 'payment', id: 'sub_1', customerId: null })]
    await db.transaction().execute(async (trx) => {
      await replaceSources(
        trx,
        'live',
        [source({ pastDueSince: 0, customerId: 'cus_old' }), payment].map(folded),
      )
      await replaceSources(trx, 'live', [subscription].map(folded))
    })
    const missing = { kind: 'manual', id: 'sub_1' } as const
    const saved = await loadSources(db, 'live', [subscription, payment, missing])
    expect([...saved.values()]).toMatchObject([subscription, payment].map(folded))
    expect(await loadSources(db, 'sandbox', [subscription])).toEqual(new Map())
  })

  it('are found by the customer they give access to now', async () => {
    const db = await temporaryStore()
    const [first, second] = [source({ id: 'sub_1' }), source({ kind: 'payment', id: 'pay_1' })]
    await db.transaction().execute(async (trx) => {
      await replaceSources(
        trx,
        'live',
        [first, second, source({ id: 'sub_9', customerId: null })].map(folded),
      )
      await replaceSources(trx, 'live', [source({ id: 'sub_2', customerId: 'cus_2' })].map(folded))
      await replaceSources(trx, 'live', [source({ id: 'sub_2', customerId: 'cus_3' })].map(folded))
      await replaceSources(trx, 'sandbox', [source({ id: 'sub_3' })].map(folded))
    })
    expect(await loadSourcesOfCustomers(db, 'live', ['cus_1', 'cus_2'])).toEqual(
      new Map([
        ['cus_1', [second, first]],
        ['cus_2', []],
      ]),
    )
  })

  it('go when they are deleted, and only they', async () => {
    const db = await temporaryStore()
    const [subscription, payment] = [source(), source({ kind: 'payment' })]
    await db.transaction().execute(async (trx) => {
      await replaceSources(trx, 'live', [subscription, payment].map(folded))
      await replaceSources(trx, 'sandbox', [payment].map(folded))
      await deleteSources(trx, 'live', [payment])
    })
    const saved = await loadSources(db, 'live', [subscription, payment])
    expect([...saved.values()]).toMatchObject([folded(subscription)])
    expect((await loadSources(db, 'sandbox', [payment])).size).toBe(1)
  })
})

describe('saved entitlements', () => {
  it('come back by customer, the newest of each, until they are deleted', async () => {
    const db = await temporaryStore()
    const ended = entitlement({ active: false, status: 'refunded', since: null, until: NOON + 1 })
    const other = entitlement({
      productId: 'pro_0',
      nextChangeAt: NOON + 9,
      until: NOON + 9,
      status: 'ending',
    })
    await db.transaction().execute(async (trx) => {
      await saveEntitlements(trx, 'live', [entitlement(), other])
      await saveEntitlements(trx, 'live', [ended])
    })
    expect(await loadEntitlements(db, 'live', ['cus_1', 'cus_2'])).toEqual(
      new Map([
        ['cus_1', [other, ended]],
        ['cus_2', []],
      ]),
    )
    expect(await loadEntitlements(db, 'sandbox', ['cus_1'])).toEqual(new Map([['cus_1', []]]))
    await db.transaction().execute((trx) => deleteEntitlements(trx, 'sandbox', [ended, other]))
    await db.transaction().execute((trx) => deleteEntitlements(trx, 'live', [other]))
    expect(await loadEntitlements(db, 'live', ['cus_1'])).toEqual(new Map([['cus_1', [ended]]]))
  })

  it('are due from the instant at which the clock changes them, the longest overdue first', async () => {
    const db = await temporaryStore()
    await db.transaction().execute(async (trx) => {
      await saveEntitlements(trx, 'live', [
        entitlement({ productId: 'never' }),
        entitlement({ productId: 'now', nextChangeAt: NOON }),
        entitlement({ productId: 'later', nextChangeAt: NOON + 1 }),
      ])
      await saveEntitlements(trx, 'sandbox', [entitlement({ productId: 'before', nextChangeAt: NOON - 1 })])
    })
    const due = await loadDue(db, NOON, 10)
    expect(due.map(({ environment, productId }) => [environment, productId])).toEqual([
      ['sandbox', 'before'],
      ['live', 'now'],
    ])
    expect(await loadDue(db, NOON, 1)).toHaveLength(1)
  })

  it('may be more than one statement can bind', async () => {
    const db = await temporaryStore()
    const records = Array.from({ length: 33_000 }, (_, index) => entitlement({ customerId: `cus_${index}` }))
    await db.transaction().execute((trx) => saveEntitlements(trx, 'live', records))
    const ids = records.map(({ customerId }) => customerId)
    const loaded = await loadEntitlements(db, 'live', ids)
    expect([...loaded.values()].flat()).toEqual(records)
    await db.transaction().execute((trx) => deleteEntitlements(trx, 'live', records))
    expect([...(await loadEntitlements(db, 'live', ids)).values()].flat()).toEqual([])
  })
})

describe('the change log', () => {
  const change = (told: Partial<NewChange> = {}): NewChange => ({
    at: NOON,
    environment: 'live',
    customerId: 'cus_1',
    productId: 'pro_1',
    before: NONE,
    after: ACTIVE,
    cause: { kind: 'event', eventId: 'evt_1' },
    ...told,
  })

  it('keeps changes in the order in which they were appended', async () => {
    const db = await temporaryStore()
    expect(await latestCursor(db)).toBe(0)
    const expired = change({ before: ACTIVE, after: NONE, cause: { kind: 'clock', eventId: null } })
    await db
      .transaction()
      .execute((trx) => appendChanges(trx, [change(), change({ environment: 'sandbox' })]))
    await db.transaction().execute((trx) => appendChanges(trx, [expired]))
    expect(await latestCursor(db)).toBe(3)
    const log = await loadChanges(db, 'live', 0, 10)
    expect(log).toEqual([
      { cursor: 1, ...change() },
      { cursor: 3, ...expired },
    ])
    expect(await loadChanges(db, 'live', 1, 10)).toEqual(log.slice(1))
    expect(await loadChanges(db, 'live', 0, 1)).toEqual(log.slice(0, 1))
  })

  it('never gives a cursor twice, even when the newest changes are gone', async () => {
    const db = await temporaryStore()
    await db.transaction().execute((trx) => appendChanges(trx, [change(), change()]))
    await db.deleteFrom('changes').execute()
    await db.transaction().execute((trx) => appendChanges(trx, [change()]))
    expect(await latestCursor(db)).toBe(3)
  })
})

describe('a setting', () => {
  it('is null until it is made, and then what it was last', async () => {
    const db = await temporaryStore()
    expect(await getSetting(db, 'policy')).toBeNull()
    await db.transaction().execute((trx) => setSetting(trx, 'policy', '{}'))
    await db.transaction().execute((trx) => setSetting(trx, 'policy', '{"canceled":"effective"}'))
    expect(await getSetting(db, 'policy')).toBe('{"canceled":"effective"}')
  })
})
