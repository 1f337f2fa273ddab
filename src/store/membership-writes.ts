import { sql, type Transaction } from 'kysely'
import {
  loadMemberships,
  type Membership,
  type MembershipKey,
  membershipKey,
  membershipOf,
  WAITS_FOR_CUSTOMER,
  WAITS_FOR_OPERATOR,
} from './membership.js'
import { afterStep, letIn, type MembershipStep, needsCall, redirected, retried } from './membership-steps.js'
import { keepMemberships } from './membership-sweeps.js'
import type { Database } from './schema.js'
import { setSetting } from './settings.js'
import { CURSOR_SETTING, type ReadSyncMark, unmarkForSync } from './sync-state.js'

/** What is desired of one account, as access and links say. */
export interface Desire extends MembershipKey {
  readonly customerId: string
  readonly desired: boolean
}

export interface Absorbed {
  /** Each membership at most once. */
  readonly desires: readonly Desire[]
  /** Up to here the change log is in them, as `formatCursor` writes it. */
  readonly cursor: string
  readonly marks: readonly ReadSyncMark[]
}

/** Writes down what is desired, and that what said so has been taken in. */
export async function absorb(
  trx: Transaction<Database>,
  { desires, cursor, marks }: Absorbed,
  now: number,
): Promise<void> {
  const stored = await loadMemberships(trx, desires)
  await keepMemberships(
    trx,
    desires.map((desire) =>
      redirected(stored.get(membershipKey(desire)) ?? neverDesired(desire, now), desire, now),
    ),
  )
  await unmarkForSync(trx, marks)
  await setSetting(trx, CURSOR_SETTING, cursor)
}

function neverDesired({ environment, target, accountId, customerId }: Desire, now: number): Membership {
  return {
    environment,
    target,
    accountId,
    customerId,
    desired: false,
    desiredSince: now,
    applied: 'unknown',
    appliedAt: null,
    given: false,
    confirmed: false,
    attempts: 0,
    nextAttemptAt: null,
    parked: null,
    mayHeal: false,
    lastError: null,
  }
}

/**
 * Takes steps of memberships, each of another one.
 * @returns in their order, whether each was taken: one that has nothing to do any more is not
 */
export async function takeSteps(
  trx: Transaction<Database>,
  steps: readonly { readonly key: MembershipKey; readonly step: MembershipStep }[],
  now: number,
): Promise<readonly boolean[]> {
  const stored = await loadMemberships(
    trx,
    steps.map(({ key }) => key),
  )
  const after = steps.map(({ key, step }) => {
    const membership = stored.get(membershipKey(key))
    return membership === undefined ? null : afterStep(membership, step, now)
  })
  await keepMemberships(
    trx,
    after.filter((one) => one !== null),
  )
  return after.map((one) => one !== null)
}

/** Whether it may become a member, which then counts as given. */
export async function letInIfDesired(
  trx: Transaction<Database>,
  key: MembershipKey,
  now: number,
): Promise<boolean> {
  const membership = (await loadMemberships(trx, [key])).get(membershipKey(key))
  if (membership === undefined || !membership.desired) return false
  await keepMemberships(trx, [letIn(membership, now)])
  return true
}

/**
 * An operator has agreed to these removals.
 * @returns how many of them are still to be made
 */
export async function confirmRemovals(
  trx: Transaction<Database>,
  keys: readonly MembershipKey[],
): Promise<number> {
  const stored = [...(await loadMemberships(trx, keys)).values()]
  const confirmed = stored.filter((one) => !one.desired && needsCall(one))
  await keepMemberships(
    trx,
    confirmed.map((one) => ({ ...one, confirmed: true })),
  )
  return confirmed.length
}

/** Which of those that are parked or have failed. */
export interface RetryFilter {
  readonly state?: 'waiting' | 'parked' | 'retrying'
  /** The code of what it is parked for, or failed with last. */
  readonly code?: string
  readonly environment?: MembershipKey['environment']
  readonly target?: string
  readonly customerId?: string
  readonly mayHeal?: boolean
}

/** Bounds how long one transaction keeps arriving deliveries waiting. */
const MAX_PER_TRANSACTION = 500

/**
 * Makes the next of them due now, in the order of their keys.
 * @returns the last of them, after which it goes on; null: those were all
 */
export async function retryMemberships(
  trx: Transaction<Database>,
  { filter, after }: { readonly filter: RetryFilter; readonly after: MembershipKey | null },
  now: number,
): Promise<MembershipKey | null> {
  const { state, code, environment, target, customerId, mayHeal } = filter
  const conditions = [
    sql`last_error is not null`,
    state === 'retrying' ? sql`next_attempt_at is not null` : null,
    state === 'waiting' ? WAITS_FOR_CUSTOMER : null,
    state === 'parked' ? WAITS_FOR_OPERATOR : null,
    code === undefined ? null : sql`substr(last_error, 1, ${code.length + 1}) = ${`${code}:`}`,
    environment === undefined ? null : sql`environment = ${environment}`,
    target === undefined ? null : sql`target = ${target}`,
    customerId === undefined ? null : sql`customer_id = ${customerId}`,
    mayHeal === undefined ? null : sql`may_heal = ${mayHeal ? 1 : 0}`,
    after === null
      ? null
      : sql`(environment, target, account_id) > (${after.environment}, ${after.target}, ${after.accountId})`,
  ].filter((condition) => condition !== null)
  const rows = await trx
    .selectFrom('memberships')
    .selectAll()
    .where(sql<boolean>`${sql.join(conditions, sql` and `)}`)
    .orderBy('environment')
    .orderBy('target')
    .orderBy('account_id')
    .limit(MAX_PER_TRANSACTION)
    .execute()
  await keepMemberships(
    trx,
    rows.map((row) => retried(membershipOf(row), now)),
  )
  const last = rows.at(-1)
  if (last === undefined || rows.length < MAX_PER_TRANSACTION) return null
  return { environment: last.environment, target: last.target, accountId: last.account_id }
}
