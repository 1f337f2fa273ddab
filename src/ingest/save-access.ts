import type { Transaction } from 'kysely'
import { entitlementsOf, nextChangeAfter } from '../entitlements/entitlement.js'
import { afterErasures } from '../entitlements/erasures.js'
import type { Entitlement, SourceState } from '../entitlements/model.js'
import type { Environment } from '../provider/event.js'
import { type ActsOnCustomer, loadActsOn, NO_ACTS } from '../store/acts-on-customers.js'
import { type AccessSnapshot, appendChanges, type NewChange } from '../store/changes.js'
import {
  deleteEntitlements,
  type EntitlementRecord,
  loadEntitlements,
  saveEntitlements,
} from '../store/entitlements.js'
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
  const saved: EntitlementRecord[] = []
  const gone: EntitlementRecord[] = []
  const changes: NewChange[] = []

  for (const customerId of customerIds) {
    const before = new Map((stored.get(customerId) ?? []).map((record) => [record.productId, record]))
    const after = accessFrom(sources.get(customerId) ?? [], acts.get(customerId) ?? NO_ACTS, {
      customerId,
      now,
    })
    const note = (productId: string, was: AccessSnapshot, is: AccessSnapshot): void => {
      if (!isChange(was, is)) return
      const cause = causeOf(customerId, productId)
      changes.push({
        at: now,
        environment,
        customerId,
        productId,
        before: snapshot(was),
        after: snapshot(is),
        cause,
      })
    }
    for (const record of after) {
      const was = before.get(record.productId)
      before.delete(record.productId)
      if (differs(was, record)) saved.push(record)
      note(record.productId, was ?? NEVER_GRANTED, record)
    }
    for (const record of before.values()) {
      gone.push(record)
      note(record.productId, record, NEVER_GRANTED)
    }
  }
  await saveEntitlements(trx, environment, saved)
  await deleteEntitlements(trx, environment, gone)
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
