import type { Transaction } from 'kysely'
import { entitlementsOf, nextChangeAfter } from '../entitlements/entitlement.js'
import { afterErasures } from '../entitlements/erasures.js'
import type { Entitlement, SourceState } from '../entitlements/model.js'
import type { Environment } from '../provider/event.js'
import { type AccessSnapshot, appendChanges, type NewChange } from '../store/changes.js'
import {
  deleteEntitlements,
  type EntitlementRecord,
  loadEntitlements,
  saveEntitlements,
} from '../store/entitlements.js'
import { type ActsOnCustomer, loadActsOn, NO_ACTS } from '../store/manual-events.js'
import type { Database } from '../store/schema.js'
import { loadSourcesOfCustomers } from '../store/sources.js'

/** What made an entitlement change, asked only if it did. */
export type CauseOf = (customerId: string, productId: string) => NewChange['cause']

export const NEVER_GRANTED: AccessSnapshot = { active: false, status: 'none', since: null, until: null }

/** Saves what follows for these customers from their stored sources and what was done by hand, and appends what changed to the change log. */
export async function saveAccess(
  trx: Transaction<Database>,
  environment: Environment,
  customerIds: readonly string[],
  now: number,
  causeOf: CauseOf,
): Promise<void> {
  const sources = await loadSourcesOfCustomers(trx, environment, customerIds)
  const acts = await loadActsOn(trx, environment, customerIds)
  const stored = await loadEntitlements(trx, environment, customerIds)
  const differences = customerIds.flatMap((customerId) => {
    const own = sources.get(customerId) ?? []
    const after = accessFrom(own, acts.get(customerId) ?? NO_ACTS, { customerId, now })
    return differencesOf(stored.get(customerId) ?? [], after)
  })
  await writeAccess(trx, environment, differences, now, causeOf)
}

/** One entitlement that is not what is written down of it; null: nothing is, or nothing is to be. */
export interface EntitlementDifference {
  readonly customerId: string
  readonly productId: string
  readonly before: EntitlementRecord | null
  readonly after: EntitlementRecord | null
}

/** Of one customer, those that there are to be first. */
export function differencesOf(
  before: readonly EntitlementRecord[],
  after: readonly EntitlementRecord[],
): readonly EntitlementDifference[] {
  const was = new Map(before.map((record) => [record.productId, record]))
  const is = new Set(after.map(({ productId }) => productId))
  const changed = after.flatMap((record) => {
    const { customerId, productId } = record
    const stored = was.get(productId)
    return differs(stored, record) ? [{ customerId, productId, before: stored ?? null, after: record }] : []
  })
  const gone = before.flatMap((record) => {
    const { customerId, productId } = record
    return is.has(productId) ? [] : [{ customerId, productId, before: record, after: null }]
  })
  return [...changed, ...gone]
}

/** Writes down what differs, and appends what of it is a change to the change log. */
export async function writeAccess(
  trx: Transaction<Database>,
  environment: Environment,
  differences: readonly EntitlementDifference[],
  now: number,
  causeOf: CauseOf,
): Promise<void> {
  const changes = differences.flatMap(({ customerId, productId, before, after }): NewChange[] => {
    const [was, is] = [before ?? NEVER_GRANTED, after ?? NEVER_GRANTED]
    if (!isChange(was, is)) return []
    const cause = causeOf(customerId, productId)
    return [
      { at: now, environment, customerId, productId, before: snapshot(was), after: snapshot(is), cause },
    ]
  })
  await saveEntitlements(
    trx,
    environment,
    differences.flatMap(({ after }) => after ?? []),
  )
  await deleteEntitlements(
    trx,
    environment,
    differences.filter(({ after }) => after === null),
  )
  await appendChanges(trx, changes)
}

/** What is to be written down of a customer who has these sources, and to whom this was done by hand. */
export function accessFrom(
  sources: readonly SourceState[],
  { blocks, erasures }: ActsOnCustomer,
  { customerId, now }: { readonly customerId: string; readonly now: number },
): readonly EntitlementRecord[] {
  const own = sources.map((source) => afterErasures(source, erasures))
  return entitlementsOf(own, blocks, { now }).map((entitlement) => toRecord(customerId, entitlement, now))
}

function toRecord(customerId: string, entitlement: Entitlement, now: number): EntitlementRecord {
  const { productId, active, status, since, until } = entitlement
  return {
    customerId,
    productId,
    active,
    status,
    since,
    until,
    nextChangeAt: nextChangeAfter([entitlement], now),
  }
}

export function snapshot({ active, status, since, until }: AccessSnapshot): AccessSnapshot {
  return { active, status, since, until }
}

/** What the change log is for: a beginning of access that moves alone is not told. */
export function isChange(a: AccessSnapshot, b: AccessSnapshot): boolean {
  return a.active !== b.active || a.status !== b.status || a.until !== b.until
}

/** Whether one is to be written down in the place of the other; undefined: nothing is. */
export function differs(a: EntitlementRecord | undefined, b: EntitlementRecord | undefined): boolean {
  if (a === undefined || b === undefined) return a !== b
  return isChange(a, b) || a.since !== b.since || a.nextChangeAt !== b.nextChangeAt
}
