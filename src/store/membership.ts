import { type Kysely, type Selectable, sql, type Transaction } from 'kysely'
import type { Environment } from '../provider/event.js'
import { bulkStatement, bulkUpsert } from './bulk.js'
import type { Database } from './schema.js'
import type { MembershipsTable } from './sync-schema.js'

export interface MembershipKey {
  readonly environment: Environment
  /** Names the role or group, whatever its environment. */
  readonly target: string
  readonly accountId: string
}

/** A failure as it is kept: a name that scripts may rely on, and what to say to people. */
export interface Failure {
  readonly code: string
  readonly message: string
}

/** Whether one platform account should be, and is, a member. Instants are epoch milliseconds. */
export interface Membership extends MembershipKey {
  readonly customerId: string
  readonly desired: boolean
  readonly desiredSince: number
  readonly applied: MembershipsTable['applied']
  readonly appliedAt: number | null
  readonly given: boolean
  readonly confirmed: boolean
  readonly attempts: number
  readonly nextAttemptAt: number | null
  readonly parked: Failure | null
  readonly mayHeal: boolean
  readonly lastError: Failure | null
}

/** Whether it is parked until the customer does something, such as to join: no operator can. */
export function waitsForCustomer({ parked, mayHeal, desired }: Membership): boolean {
  return parked !== null && mayHeal && desired
}

/** The same of a row. */
export const WAITS_FOR_CUSTOMER = sql`(parked is not null and may_heal = 1 and desired = 1)`
/** Of a row that is parked until an operator does something. */
export const WAITS_FOR_OPERATOR = sql`(parked is not null and not (may_heal = 1 and desired = 1))`

export function membershipKey({ environment, target, accountId }: MembershipKey): string {
  return JSON.stringify([environment, target, accountId])
}

const selectMemberships = bulkStatement(
  (keys) => sql<Selectable<MembershipsTable>>`
    select * from memberships where (environment, target, account_id) in (${keys})`,
)

/** By `membershipKey`; one that is not there is not in the map. */
export async function loadMemberships(
  db: Kysely<Database>,
  keys: readonly MembershipKey[],
): Promise<ReadonlyMap<string, Membership>> {
  const rows = await selectMemberships(
    db,
    keys.map(({ environment, target, accountId }) => [environment, target, accountId]),
  )
  const found = rows.map(membershipOf)
  return new Map(found.map((one) => [membershipKey(one), one]))
}

const upsert = bulkUpsert(
  'memberships',
  ['environment', 'target', 'account_id'],
  [
    'customer_id',
    'desired',
    'desired_since',
    'applied',
    'applied_at',
    'given',
    'confirmed',
    'attempts',
    'next_attempt_at',
    'parked',
    'may_heal',
    'last_error',
  ],
)

/** Each at most once. */
export function saveMemberships(
  trx: Transaction<Database>,
  memberships: readonly Membership[],
): Promise<void> {
  return upsert(trx, memberships.map(toRow))
}

export function membershipOf(row: Selectable<MembershipsTable>): Membership {
  return {
    environment: row.environment,
    target: row.target,
    accountId: row.account_id,
    customerId: row.customer_id,
    desired: row.desired === 1,
    desiredSince: row.desired_since,
    applied: row.applied,
    appliedAt: row.applied_at,
    given: row.given === 1,
    confirmed: row.confirmed === 1,
    attempts: row.attempts,
    nextAttemptAt: row.next_attempt_at,
    parked: failureOf(row.parked),
    mayHeal: row.may_heal === 1,
    lastError: failureOf(row.last_error),
  }
}

function toRow(membership: Membership): Selectable<MembershipsTable> {
  return {
    environment: membership.environment,
    target: membership.target,
    account_id: membership.accountId,
    customer_id: membership.customerId,
    desired: membership.desired ? 1 : 0,
    desired_since: membership.desiredSince,
    applied: membership.applied,
    applied_at: membership.appliedAt,
    given: membership.given ? 1 : 0,
    confirmed: membership.confirmed ? 1 : 0,
    attempts: membership.attempts,
    next_attempt_at: membership.nextAttemptAt,
    parked: textOf(membership.parked),
    may_heal: membership.mayHeal ? 1 : 0,
    last_error: textOf(membership.lastError),
  }
}

/** Between the code, which has no colon, and the message. */
const SEPARATOR = ': '

function textOf(failure: Failure | null): string | null {
  return failure === null ? null : `${failure.code}${SEPARATOR}${failure.message}`
}

export function failureOf(text: string | null): Failure | null {
  if (text === null) return null
  const [code = '', ...message] = text.split(SEPARATOR)
  return { code, message: message.join(SEPARATOR) }
}
