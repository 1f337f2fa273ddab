import { type Kysely, sql, type Transaction } from 'kysely'
import type { Environment } from '../provider/event.js'
import { bulkStatement } from './bulk.js'
import {
  loadMemberships,
  type Membership,
  type MembershipKey,
  membershipKey,
  saveMemberships,
} from './membership.js'
import type { TargetRef } from './membership-lists.js'
import { isGone, isOver } from './membership-steps.js'
import type { Database } from './schema.js'

/** `isGone` of a row. */
const IS_GONE = sql<boolean>`(desired = 0 and given = 1 and applied = 'unknown'
  and next_attempt_at is null and parked is null)`

/**
 * Has these asked about again: members that should be, and that were not seen since `before` (epoch milliseconds);
 * and has taken what those hold who were gone. What is known of them stays until then.
 */
export async function recheckMemberships(
  trx: Transaction<Database>,
  { keys, before }: { readonly keys: readonly MembershipKey[]; readonly before: number },
  now: number,
): Promise<number> {
  const stored = await loadMemberships(trx, keys)
  const due = keys.flatMap((key) => {
    const one = stored.get(membershipKey(key))
    if (one === undefined) return []
    const isUnseen = one.desired && one.applied === 'member' && (one.appliedAt ?? 0) < before
    return isUnseen || isGone(one) ? [{ ...one, nextAttemptAt: now }] : []
  })
  await saveMemberships(trx, due)
  return due.length
}

/** Those who were gone when they should have been taken from, in the order of their accounts. */
export async function loadGoneMembers(
  db: Kysely<Database>,
  { environment, target }: TargetRef,
  after: string,
  limit: number,
): Promise<readonly MembershipKey[]> {
  const { rows } = await sql<{ account_id: string }>`
    select account_id from memberships
    where environment = ${environment} and target = ${target} and account_id > ${after} and ${IS_GONE}
    order by account_id limit ${limit}`.execute(db)
  return rows.map((row) => ({ environment, target, accountId: row.account_id }))
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
  const over = memberships.filter(isOver)
  const rows = await selectErased(
    trx,
    over.map(({ environment, customerId }) => [environment, customerId]),
  )
  const erased = new Set(rows.map((row) => JSON.stringify([row.environment, row.customer_id])))
  const isForgotten = (one: Membership) =>
    isOver(one) && erased.has(JSON.stringify([one.environment, one.customerId]))
  await saveMemberships(
    trx,
    memberships.filter((one) => !isForgotten(one)),
  )
  const forgotten = memberships.filter(isForgotten)
  await remove(
    trx,
    forgotten.map(({ environment, target, accountId }) => [environment, target, accountId]),
  )
}

/** Bounds how long one transaction keeps arriving deliveries waiting. */
const MAX_PER_TRANSACTION = 500

/**
 * Forgets memberships of a target that are over since `before`, and those who are gone since `goneBefore` (epoch
 * milliseconds).
 * @returns whether there may be more
 */
export async function forgetMemberships(
  trx: Transaction<Database>,
  { environment, target, before, goneBefore }: TargetRef & Readonly<Record<'before' | 'goneBefore', number>>,
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
    .where(sql<boolean>`(desired_since < ${goneBefore} or not ${IS_GONE})`)
    .limit(MAX_PER_TRANSACTION)
  const { numDeletedRows } = await trx
    .deleteFrom('memberships')
    .where('environment', '=', environment)
    .where('target', '=', target)
    .where('account_id', 'in', over)
    .executeTakeFirstOrThrow()
  return Number(numDeletedRows) === MAX_PER_TRANSACTION
}
