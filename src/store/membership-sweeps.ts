import { sql, type Transaction } from 'kysely'
import type { Environment } from '../provider/event.js'
import { bulkStatement } from './bulk.js'
import { reopenErasures } from './erasures.js'
import {
  loadMemberships,
  type Membership,
  type MembershipKey,
  membershipKey,
  saveMemberships,
} from './membership.js'
import type { TargetRef } from './membership-lists.js'
import { needsCall } from './membership-steps.js'
import type { Database } from './schema.js'

/**
 * Has these asked about again: members that should be, and that were not seen since `before` (epoch milliseconds).
 * What is known of them stays until then.
 */
export async function recheckMemberships(
  trx: Transaction<Database>,
  { keys, before }: { readonly keys: readonly MembershipKey[]; readonly before: number },
  now: number,
): Promise<number> {
  const stored = await loadMemberships(trx, keys)
  const due = keys.flatMap((key) => {
    const one = stored.get(membershipKey(key))
    const isSettled = one?.desired && one.applied === 'member'
    return isSettled && (one.appliedAt ?? 0) < before ? [{ ...one, nextAttemptAt: now }] : []
  })
  await saveMemberships(trx, due)
  return due.length
}

const selectErased = bulkStatement(
  (keys) => sql<{ environment: Environment; customer_id: string }>`
    select environment, customer_id from erasures where (environment, customer_id) in (${keys})`,
)

const remove = bulkStatement(
  (keys) => sql`delete from memberships where (environment, target, account_id) in (${keys})`,
)

/** Saves memberships, each at most once; of somebody who was erased nothing stays once there is nothing left to do. */
export async function keepMemberships(
  trx: Transaction<Database>,
  memberships: readonly Membership[],
): Promise<void> {
  const over = memberships.filter((one) => !one.desired && !needsCall(one))
  const rows = await selectErased(
    trx,
    over.map(({ environment, customerId }) => [environment, customerId]),
  )
  const erased = new Set(rows.map((row) => JSON.stringify([row.environment, row.customer_id])))
  const isForgotten = (one: Membership) =>
    !one.desired && !needsCall(one) && erased.has(JSON.stringify([one.environment, one.customerId]))
  await saveMemberships(
    trx,
    memberships.filter((one) => !isForgotten(one)),
  )
  const forgotten = memberships.filter(isForgotten)
  await remove(
    trx,
    forgotten.map(({ environment, target, accountId }) => [environment, target, accountId]),
  )
  await reopenErasures(trx, forgotten)
}

/** Bounds how long one transaction keeps arriving deliveries waiting. */
const MAX_PER_TRANSACTION = 500

/**
 * Forgets memberships of a target that are over since `before` (epoch milliseconds): not desired, and nothing left
 * to take back.
 * @returns whether there may be more
 */
export async function forgetMemberships(
  trx: Transaction<Database>,
  { environment, target, before }: TargetRef & { readonly before: number },
): Promise<boolean> {
  const over = trx
    .selectFrom('memberships')
    .select('account_id')
    .where('environment', '=', environment)
    .where('target', '=', target)
    .where('desired', '=', 0)
    .where('next_attempt_at', 'is', null)
    .where('parked', 'is', null)
    .where('desired_since', '<', before)
    .where(sql`coalesce(applied_at, 0)`, '<', before)
    .limit(MAX_PER_TRANSACTION)
  const { numDeletedRows } = await trx
    .deleteFrom('memberships')
    .where('environment', '=', environment)
    .where('target', '=', target)
    .where('account_id', 'in', over)
    .executeTakeFirstOrThrow()
  return Number(numDeletedRows) === MAX_PER_TRANSACTION
}
