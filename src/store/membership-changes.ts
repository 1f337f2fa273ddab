import { type Selectable, sql, type Transaction } from 'kysely'
import type { Environment } from '../provider/event.js'
import { bulkStatement, bulkUpsert } from './bulk.js'
import {
  type Happening,
  type Membership,
  type MembershipKey,
  membershipKey,
  type NewDesire,
  neverDesired,
  next,
} from './membership.js'
import {
  allOf,
  isAfter,
  isOf,
  keyRow,
  loadMemberships,
  membershipsWhere,
  type TargetRef,
} from './memberships.js'
import type { Database } from './schema.js'
import { setSetting } from './settings.js'
import type { MembershipsTable } from './sync-schema.js'
import { CURSOR_SETTING, type ReadSyncMark, unmarkForSync } from './sync-state.js'

/** Bounds how long one transaction keeps arriving deliveries waiting. */
const MAX_PER_TRANSACTION = 500

export interface Desired {
  /** Each membership at most once. */
  readonly desires: readonly NewDesire[]
  /** Up to here the change log is in them, as `formatCursor` writes it. */
  readonly cursor: string
  readonly marks: readonly ReadSyncMark[]
}

/** Writes down what is desired, and that what said so has been taken in. */
export async function saveDesires(
  trx: Transaction<Database>,
  { desires, cursor, marks }: Desired,
  now: number,
): Promise<void> {
  const stored = await loadMemberships(trx, desires)
  const after = desires.map((desire) => {
    const before = stored.get(membershipKey(desire)) ?? neverDesired(desire, now)
    return next(before, { kind: 'desired', ...desire }, now)
  })
  await keep(trx, after)
  await unmarkForSync(trx, marks)
  await setSetting(trx, CURSOR_SETTING, cursor)
}

export interface MembershipStep {
  readonly key: MembershipKey
  readonly happening: Happening
}

/**
 * Writes down what happened to memberships, to each one thing.
 * @returns in their order, whether it changed anything: a call must not begin that has nothing to do any more
 */
export async function stepMemberships(
  trx: Transaction<Database>,
  steps: readonly MembershipStep[],
  now: number,
): Promise<readonly boolean[]> {
  const stored = await loadMemberships(
    trx,
    steps.map(({ key }) => key),
  )
  const after = steps.map(({ key, happening }) => {
    const membership = stored.get(membershipKey(key))
    return membership === undefined ? null : next(membership, happening, now)
  })
  await keep(trx, after)
  return after.map((one) => one !== null)
}

/** Which of those that are parked or have failed. */
export interface RetryFilter {
  readonly state?: 'waiting' | 'parked' | 'retrying'
  /** The code of what it is parked for, or failed with last. */
  readonly code?: string
  readonly environment?: Environment
  readonly target?: string
  readonly customerId?: string
  readonly mayHeal?: boolean
}

const IS_RETRIED = {
  retrying: sql`state in ('retrying', 'recheck')`,
  waiting: sql`state = 'waiting'`,
  parked: sql`state = 'parked'`,
} as const

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
  const found = await membershipsWhere(
    trx,
    sql`${allOf([
      sql`error_code is not null`,
      state && IS_RETRIED[state],
      code && sql`error_code = ${code}`,
      environment && sql`environment = ${environment}`,
      target && sql`target = ${target}`,
      customerId && sql`customer_id = ${customerId}`,
      mayHeal && sql`may_heal = 1`,
      after && isAfter(after),
    ])} order by environment, target, account_id limit ${MAX_PER_TRANSACTION}`,
  )
  await keep(
    trx,
    found.map((one) => next(one, { kind: 'retry' }, now)),
  )
  const last = found.at(-1)
  if (last === undefined || found.length < MAX_PER_TRANSACTION) return null
  return { environment: last.environment, target: last.target, accountId: last.accountId }
}

/**
 * Forgets memberships of a target that are over since `before`, and those who are gone since `goneBefore` (epoch
 * milliseconds).
 * @returns whether there may be more
 */
export async function forgetMemberships(
  trx: Transaction<Database>,
  { before, goneBefore, ...target }: TargetRef & Readonly<Record<'before' | 'goneBefore', number>>,
): Promise<boolean> {
  const over = await membershipsWhere(
    trx,
    sql`${isOf(target)} and state in ('settled', 'gone') and desired = 0 and coalesce(applied_at, 0) < ${before}
      and desired_since < case state when 'gone' then ${goneBefore} else ${before} end limit ${MAX_PER_TRANSACTION}`,
  )
  await remove(trx, over.map(keyRow))
  return over.length === MAX_PER_TRANSACTION
}

const upsert = bulkUpsert(
  'memberships',
  ['environment', 'target', 'account_id'],
  [
    'customer_id',
    'state',
    'desired',
    'desired_since',
    'reason',
    'applied',
    'applied_at',
    'given',
    'confirmed',
    'attempts',
    'next_attempt_at',
    'may_heal',
    'error_code',
    'error',
  ],
)

const remove = bulkStatement(
  (keys) => sql`delete from memberships where (environment, target, account_id) in (${keys})`,
)

const selectErased = bulkStatement(
  (keys) => sql<{ environment: Environment; customer_id: string }>`
    select environment, customer_id from erasures where (environment, customer_id) in (${keys})`,
)

/** Saves memberships, each at most once; of somebody who was erased nothing stays once there is nothing left to do. */
async function keep(trx: Transaction<Database>, changed: readonly (Membership | null)[]): Promise<void> {
  const memberships = changed.filter((one) => one !== null)
  const isOver = ({ desired, state }: Membership) => !desired && (state === 'settled' || state === 'gone')
  const rows = await selectErased(
    trx,
    memberships.filter(isOver).map(({ environment, customerId }) => [environment, customerId]),
  )
  const erased = new Set(rows.map((row) => JSON.stringify([row.environment, row.customer_id])))
  const isForgotten = (one: Membership) =>
    isOver(one) && erased.has(JSON.stringify([one.environment, one.customerId]))
  await upsert(trx, memberships.filter((one) => !isForgotten(one)).map(toRow))
  await remove(trx, memberships.filter(isForgotten).map(keyRow))
}

function toRow(membership: Membership): Selectable<MembershipsTable> {
  return {
    environment: membership.environment,
    target: membership.target,
    account_id: membership.accountId,
    customer_id: membership.customerId,
    state: membership.state,
    desired: membership.desired ? 1 : 0,
    desired_since: membership.desiredSince,
    reason: membership.reason && JSON.stringify(membership.reason),
    applied: membership.applied,
    applied_at: membership.appliedAt,
    given: membership.given ? 1 : 0,
    confirmed: membership.confirmed ? 1 : 0,
    attempts: membership.attempts,
    next_attempt_at: membership.nextAttemptAt,
    may_heal: membership.mayHeal ? 1 : 0,
    error_code: membership.error?.code ?? null,
    error: membership.error?.message ?? null,
  }
}
