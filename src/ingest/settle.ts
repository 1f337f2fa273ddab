import { type ActsOnCustomer, afterErasures, foldActs } from '../entitlements/by-hand.js'
import {
  entitlementsOf,
  givesSameAccess,
  isChange,
  NEVER_GRANTED,
  nextChangeAfter,
  snapshotOf,
} from '../entitlements/entitlement.js'
import type { SourceState } from '../entitlements/model.js'
import type { Environment, ManualEvent, NormalizedEvent } from '../provider/event.js'
import type { ManualEventType } from '../provider/event-types.js'
import { pipelined } from '../store/bulk.js'
import { appendChanges, type NewChange } from '../store/changes.js'
import { beside, engineOf } from '../store/engine.js'
import {
  deleteEntitlements,
  type EntitlementRecord,
  loadDue,
  loadEntitlements,
  saveEntitlements,
} from '../store/entitlements.js'
import { loadManualEvents } from '../store/events.js'
import type { Db, PersonKey, Tx } from '../store/schema.js'
import { loadSourcesOfCustomers } from '../store/sources.js'
import type { SourceChange } from './fold-batch.js'
import { lockName } from './locks.js'

/** The cause of a change, computed only if an entitlement changed. */
export type CauseOf = (difference: EntitlementDifference) => NewChange['cause']

/** What access follows from, and what is stored of it, by customer id. */
export interface AccessInputs {
  readonly sources: ReadonlyMap<string, readonly SourceState[]>
  readonly acts: ReadonlyMap<string, readonly ManualEvent[]>
  readonly entitlements: ReadonlyMap<string, readonly EntitlementRecord[]>
}

/** What should be stored of these customers' access otherwise. */
export function accessDifferences(customerIds: readonly string[], inputs: AccessInputs, now: number) {
  const { sources, acts, entitlements } = inputs
  return customerIds.flatMap((customerId) => {
    const own = sources.get(customerId) ?? []
    const after = accessFrom(own, foldActs(acts.get(customerId)), { customerId, now })
    return differencesOf(entitlements.get(customerId) ?? [], after)
  })
}

/** An entitlement that differs from the stored one; null: none is stored, or none should be. */
export interface EntitlementDifference {
  readonly customerId: string
  readonly productId: string
  readonly before: EntitlementRecord | null
  readonly after: EntitlementRecord | null
}

/** The entitlements of one customer that should be stored first. */
export function differencesOf(before: readonly EntitlementRecord[], after: readonly EntitlementRecord[]) {
  const was = new Map(before.map((record) => [record.productId, record]))
  const is = new Map(after.map((record) => [record.productId, record]))
  return [...new Map([...is, ...was]).values()].flatMap(({ customerId, productId }) => {
    const [stored, record] = [was.get(productId) ?? null, is.get(productId) ?? null]
    return differs(stored, record) ? [{ customerId, productId, before: stored, after: record }] : []
  })
}

/** Stores what differs, and appends the changes among it to the change log. */
export async function writeAccess(
  trx: Tx,
  environment: Environment,
  differences: readonly EntitlementDifference[],
  now: number,
  causeOf: CauseOf,
): Promise<void> {
  const changes = differences.flatMap((difference): NewChange[] => {
    const { customerId, productId } = difference
    const [was, is] = [difference.before ?? NEVER_GRANTED, difference.after ?? NEVER_GRANTED]
    if (!isChange(was, is)) return []
    const [before, after, cause] = [snapshotOf(was), snapshotOf(is), causeOf(difference)]
    return [{ at: now, environment, customerId, productId, before, after, cause }]
  })
  const [records, gone] = [
    differences.flatMap(({ after }) => after ?? []),
    differences.filter((one) => one.after === null),
  ]
  await pipelined([
    saveEntitlements(trx, environment, records),
    deleteEntitlements(trx, environment, gone),
    appendChanges(trx, changes),
  ])
}

/** The entitlements of a customer with these sources and changes by hand. */
export function accessFrom(
  sources: readonly SourceState[],
  { blocks, erasures }: ActsOnCustomer,
  { customerId, now }: { readonly customerId: string; readonly now: number },
): readonly EntitlementRecord[] {
  const own = sources.map((source) => afterErasures(source, erasures))
  return entitlementsOf(own, blocks, { now }).map((one) => {
    const nextChangeAt = nextChangeAfter([one], now)
    return { customerId, productId: one.productId, ...snapshotOf(one), nextChangeAt }
  })
}

/** Whether the second record should replace the first; null: no record. */
function differs(a: EntitlementRecord | null, b: EntitlementRecord | null): boolean {
  if (a === null || b === null) return a !== b
  return isChange(a, b) || a.since !== b.since || a.nextChangeAt !== b.nextChangeAt
}

/** The customers whose access may have changed, with the affected products. */
interface Touch {
  readonly isOf: (productId: string) => boolean
  readonly causedBy: string
}

export interface TouchedCustomers {
  readonly environment: Environment
  readonly customerIds: readonly string[]
}

/** Changes by hand to a customer that belong to no source. */
const TOUCHES_ACCESS: readonly ManualEventType[] = ['manual.blocked', 'manual.unblocked', 'manual.erased']

/** The customers affected by changes of these sources, or by these events alone. */
export function whoIsTouched(
  changes: readonly SourceChange[],
  events: readonly NormalizedEvent[],
  now: number,
) {
  const byCustomer = new Map<string, Touch[]>()
  const answersOf = new Set<string>()
  const touch = (customerId: string, by: Touch): void => {
    byCustomer.set(customerId, [...(byCustomer.get(customerId) ?? []), by])
    answersOf.add(customerId)
  }
  for (const { before, after, causedBy } of changes) {
    const isSame = givesSameAccess(before, after, now)
    for (const state of [before, after]) {
      if (state === null || state.customerId === null) continue
      if (isSame) answersOf.add(state.customerId)
      else
        touch(state.customerId, {
          isOf: (id) => state.intervals.some((one) => one.productId === id),
          causedBy,
        })
    }
  }
  for (const event of events) {
    if (event.subject !== 'manual' || !TOUCHES_ACCESS.includes(event.type)) continue
    const { productId: blocked, id: causedBy } = event
    touch(event.customerId, { isOf: (productId) => blocked === null || blocked === productId, causedBy })
  }
  return {
    /** Customers whose access may change: few events do that; a payment's second or a renewal's do not. */
    accessOf: [...byCustomer.keys()],
    /** Customers with possibly different answers, about their access or its reasons. */
    answersOf: [...answersOf],
    /** The event that changed an entitlement. */
    causeOf: (({ customerId, productId }) => {
      const touched = byCustomer.get(customerId) ?? []
      const ofProduct = touched.findLast(({ isOf }) => isOf(productId))
      return { kind: 'event', eventId: (ofProduct ?? touched.at(-1))?.causedBy ?? null }
    }) satisfies CauseOf,
  }
}

/** Bounds how long one transaction blocks deliveries. */
const MAX_PER_TRANSACTION = 500

/**
 * Stores changes that time alone has caused: access that ended without an event.
 * Queries don't need this, since they use the clock; the change log does.
 * @returns how many entitlements were due
 */
export async function refreshDue(db: Db, clock: () => number): Promise<number> {
  let total = 0
  for (;;) {
    const now = clock()
    const due = await loadDue(db, now, MAX_PER_TRANSACTION)
    if (due.length > 0) await refresh(db, due, now)
    total += due.length
    if (due.length < MAX_PER_TRANSACTION) return total
  }
}

/** Whatever has changed since they were found: they are read again. */
function refresh(db: Db, due: readonly PersonKey[], now: number): Promise<void> {
  return beside(db, async (trx) => {
    const names = due.map(({ environment, customerId: id }) =>
      lockName({ environment, kind: 'customer', id }),
    )
    await engineOf(trx).lock(trx, names)
    for (const [environment, own] of Map.groupBy(due, (one) => one.environment)) {
      const customerIds = [...new Set(own.map(({ customerId }) => customerId))]
      const [sources, acts, entitlements] = await pipelined([
        loadSourcesOfCustomers(trx, environment, customerIds),
        loadManualEvents(trx, environment, customerIds),
        loadEntitlements(trx, environment, customerIds),
      ])
      const differences = accessDifferences(customerIds, { sources, acts, entitlements }, now)
      await writeAccess(trx, environment, differences, now, () => ({ kind: 'clock', eventId: null }))
    }
  })
}
