import { type Selectable, sql } from 'kysely'
import type { Environment } from '../provider/event.js'
import { allOf, bulkLookup, bulkStatement, bulkUpsert, countRows } from './bulk.js'
import type { Change } from './changes.js'
import type { Db, MembershipsTable, Tx } from './schema.js'

type Row = Selectable<MembershipsTable>

export interface MembershipKey {
  readonly environment: Environment
  /** `discord:<guild>:<role>` or `telegram:<group>`, the same in every environment. */
  readonly target: string
  readonly accountId: string
}

export function membershipKey({ environment, target, accountId }: MembershipKey): string {
  return JSON.stringify([environment, target, accountId])
}

/** A stored failure: a code that scripts may rely on, and a message for people. */
export interface Failure {
  readonly code: string
  readonly message: string
}

export type StoredState = MembershipsTable['state']

/** Whether one platform account should be, and is, a member of one target. Instants are epoch milliseconds. */
export interface Membership extends MembershipKey {
  /** The customer with this account for whom it was last computed; there may be others. */
  readonly customerId: string
  readonly state: StoredState
  readonly desired: boolean
  readonly desiredSince: number
  /** Why `desired` last changed; null: it never did. */
  readonly reason: MembershipReason | null
  /** The platform's last answer; `unknown` also during a call, and for an account that is gone. */
  readonly applied: MembershipsTable['applied']
  /** When it said so; null while unknown, unless the account was let in when it asked. */
  readonly appliedAt: number | null
  /** Latchkey made it a member, or was about to. Members added by others are never removed. */
  readonly given: boolean
  /** An operator confirmed this removal above the bound. */
  readonly confirmed: boolean
  readonly attempts: number
  /** Null unless the state has a due time. */
  readonly nextAttemptAt: number | null
  /** The newest failure; null since the last success. */
  readonly error: Failure | null
}

/**
 * Why a membership is given or removed: access changed, as the change log says; an account was linked (`link`);
 * products got other targets (`config`); or a restore marked everyone (`restore`).
 */
export interface MembershipReason {
  readonly productIds: readonly string[]
  /** `eventId`: null if no event caused it, or none is known. */
  readonly cause: {
    readonly kind: Change['cause']['kind'] | 'link' | 'config' | 'restore'
    readonly eventId: string | null
  }
}

/** A role or group as its memberships name it. */
export interface TargetRef {
  readonly environment: Environment
  readonly target: string
}

/** A call has to be made, now or after a failure. */
export const OPEN_STATES = ['due', 'retrying'] as const satisfies readonly StoredState[]

const isOf = ({ environment, target }: TargetRef) => sql`environment = ${environment} and target = ${target}`
const isOpen = sql`state in ('due', 'retrying')`
/** If the bound on removals holds these, an operator has to confirm first. */
const isUnconfirmed = sql`${isOpen} and desired = 0 and confirmed = 0`

/** Every target that has memberships, configured or not. */
export async function loadTargetRefs(db: Db): Promise<readonly TargetRef[]> {
  return db.selectFrom('memberships').select(['environment', 'target']).distinct().execute()
}

const KEY = ['environment', 'target', 'account_id'] as const
const selectByKey = bulkLookup(KEY, sql<Row>`select * from memberships where`)

/** Existing ones by `membershipKey`. */
export async function loadMemberships(db: Db, keys: readonly MembershipKey[]) {
  const rows = await selectByKey(db, keys.map(keyRow))
  return new Map(rows.map(fromRow).map((one) => [membershipKey(one), one]))
}

/** Selects memberships; an omitted field allows every value. */
export interface MembershipFilter {
  readonly environments?: readonly Environment[]
  readonly target?: string
  /** The customers for whom they were last computed. */
  readonly customerIds?: readonly string[]
  readonly accountIds?: readonly string[]
  /** Either of them: a customer, and the accounts that they may share with others. */
  readonly about?: { readonly customerId: string; readonly accountIds: readonly string[] }
  readonly states?: readonly StoredState[]
  readonly hasFailed?: true
  /** Whether it is an unconfirmed removal from one of these targets. */
  readonly unconfirmed?: { readonly from: readonly TargetRef[]; readonly is: boolean }
  readonly after?: MembershipKey
}

/** @param limit the maximum number, in key order; if omitted, all, unordered */
export async function findMemberships(db: Db, filter: MembershipFilter, limit?: number) {
  const { environments, target, customerIds, accountIds, about, states, unconfirmed, after } = filter
  const isAny = (column: string, values: readonly string[] | undefined) =>
    values && sql`${sql.ref(column)} in (${sql.join(values)})`
  const held = unconfirmed?.from.map((one) => sql`(${isOf(one)})`) ?? []
  const isHeld = sql`(${isUnconfirmed} and (${sql.join([sql`1 = 0`, ...held], sql` or `)}))`
  const isAsked = allOf(
    isAny('environment', environments),
    isAny('target', target === undefined ? undefined : [target]),
    isAny('customer_id', customerIds),
    isAny('account_id', accountIds),
    about &&
      sql`(customer_id = ${about.customerId} or account_id in (${sql.join([sql`null`, ...about.accountIds])}))`,
    isAny('state', states),
    filter.hasFailed && sql`error_code is not null`,
    unconfirmed && sql`${unconfirmed.is ? sql`` : sql`not `}${isHeld}`,
    after && sql`(environment, target, account_id) > (${sql.join(keyRow(after))})`,
  )
  const { rows } = await sql<Row>`
    select * from memberships where ${isAsked}
    ${limit === undefined ? sql`` : sql`order by environment, target, account_id limit ${limit}`}`.execute(db)
  return rows.map(fromRow)
}

/** All memberships of a target, or those in some states, in pages. */
export async function* membershipPages(
  db: Db,
  { environment, target }: TargetRef,
  size: number,
  states?: readonly StoredState[],
): AsyncGenerator<readonly Membership[]> {
  const filter = { environments: [environment], target, ...(states && { states }) }
  let page = await findMemberships(db, filter, size)
  for (let last = page.at(-1); last !== undefined; last = page.at(-1)) {
    yield page
    page = page.length < size ? [] : await findMemberships(db, { ...filter, after: last }, size)
  }
}

/** The kinds of due memberships of a target, in the column order of their index. */
const IS_DUE = {
  give: sql`${isOpen} and desired = 1 and confirmed = 0`,
  take: isUnconfirmed,
  agreedTake: sql`${isOpen} and desired = 0 and confirmed = 1`,
  recheck: sql`state = 'recheck' and desired = 1 and confirmed = 0`,
} as const
export type DueKind = keyof typeof IS_DUE

export async function loadDueMemberships(
  db: Db,
  target: TargetRef,
  kind: DueKind,
  now: number,
  limit: number,
): Promise<readonly Membership[]> {
  const { rows } = await sql<Row>`select * from memberships
    where ${isOf(target)} and ${IS_DUE[kind]} and next_attempt_at <= ${now} limit ${limit}`.execute(db)
  return rows.map(fromRow)
}

/**
 * When the next membership of a target is due, in epoch milliseconds; null: none is.
 * @param held leaves out removals that wait for an operator
 */
export async function nextDueAt(db: Db, target: TargetRef, held: boolean): Promise<number | null> {
  const { rows } = await sql<{ at: number | null }>`
    select min(next_attempt_at) as at from memberships
    where ${isOf(target)} and state in ('due', 'retrying', 'recheck')
      ${held ? sql`and (desired = 1 or confirmed = 1)` : sql``}`.execute(db)
  return rows[0]?.at ?? null
}

/** Of a platform's memberships that met its limit, the one with the latest retry. */
export async function findLongestLimit(db: Db, platform: string): Promise<Membership | null> {
  const { rows } = await sql<Row>`
    select * from memberships where next_attempt_at is not null and error_code = 'rate_limited'
      and target like ${`${platform}:%`} order by next_attempt_at desc limit 1`.execute(db)
  return rows.map(fromRow)[0] ?? null
}

/** Removals from a target that no operator has confirmed, and that are still to be made. */
export function countUnconfirmed(db: Db, target: TargetRef): Promise<number> {
  return countRows(db, 'memberships', sql`${isOf(target)} and ${isUnconfirmed}`)
}

/** The members of a target, and those that were removed after an instant, in epoch milliseconds. */
export async function countMembers(db: Db, target: TargetRef, after: number) {
  const isRemoved = sql`${isOf(target)} and applied = 'absent' and applied_at > ${after} and desired = 0 and given = 1`
  return {
    members: await countRows(db, 'memberships', sql`${isOf(target)} and applied = 'member'`),
    removed: await countRows(db, 'memberships', isRemoved),
    removedUnconfirmed: await countRows(db, 'memberships', sql`${isRemoved} and confirmed = 0`),
  }
}

/** How many of a target's memberships are in each state, and whether they are unconfirmed removals. */
export async function countStates(db: Db, target: TargetRef) {
  const { rows } = await sql<{ state: StoredState; unconfirmed: number; count: number }>`
    select state, case when ${isUnconfirmed} then 1 else 0 end as unconfirmed, count(*) as count from memberships
    where ${isOf(target)} group by state, unconfirmed`.execute(db)
  return rows.map((row) => ({ ...row, unconfirmed: row.unconfirmed === 1 }))
}

/** Bounds how long one transaction blocks deliveries. */
export const MAX_PER_TRANSACTION = 500

/** Selects what to retry; an omitted field allows every value. */
export interface RetryFilter extends Pick<MembershipFilter, 'environments' | 'target'> {
  readonly customerId?: string
}

/**
 * Deletes memberships of a target that ended before `before`, and accounts that are gone since `goneBefore` (epoch
 * milliseconds).
 * @returns whether there may be more
 */
export async function forgetMemberships(
  trx: Tx,
  { before, goneBefore, ...target }: TargetRef & Readonly<Record<'before' | 'goneBefore', number>>,
): Promise<boolean> {
  const { numAffectedRows } = await sql`
    delete from memberships where (environment, target, account_id) in (
      select environment, target, account_id from memberships
      where ${isOf(target)} and desired = 0 and coalesce(applied_at, 0) < ${before}
        and (state = 'settled' and desired_since < ${before} or state = 'gone' and desired_since < ${goneBefore})
      limit ${MAX_PER_TRANSACTION})`.execute(trx)
  return Number(numAffectedRows) === MAX_PER_TRANSACTION
}

/** Rows of an erased customer are deleted once there is nothing left to do. */
const deleteErased = bulkStatement(
  (key) => sql`
    delete from memberships where (environment, target, account_id) in (${key})
      and desired = 0 and state in ('settled', 'gone') and exists (select 1 from erasures
        where erasures.environment = memberships.environment and erasures.customer_id = memberships.customer_id)`,
)

/** Each membership at most once. */
export async function saveMemberships(trx: Tx, memberships: readonly Membership[]): Promise<void> {
  await upsert(trx, memberships.map(toRow))
  const ended = memberships.filter(({ desired }) => !desired)
  await deleteErased(trx, ended.map(keyRow))
}

const upsert = bulkUpsert('memberships', KEY)

function keyRow({ environment, target, accountId }: MembershipKey) {
  return [environment, target, accountId] as const
}

function toRow(membership: Membership): Row {
  return {
    environment: membership.environment,
    target: membership.target,
    account_id: membership.accountId,
    customer_id: membership.customerId,
    state: membership.state,
    desired: Number(membership.desired),
    desired_since: membership.desiredSince,
    reason: membership.reason && JSON.stringify(membership.reason),
    applied: membership.applied,
    applied_at: membership.appliedAt,
    given: Number(membership.given),
    confirmed: Number(membership.confirmed),
    attempts: membership.attempts,
    next_attempt_at: membership.nextAttemptAt,
    error_code: membership.error?.code ?? null,
    error: membership.error?.message ?? null,
  }
}

function fromRow(row: Row): Membership {
  return {
    environment: row.environment,
    target: row.target,
    accountId: row.account_id,
    customerId: row.customer_id,
    state: row.state,
    desired: row.desired === 1,
    desiredSince: row.desired_since,
    reason: row.reason === null ? null : (JSON.parse(row.reason) as MembershipReason),
    applied: row.applied,
    appliedAt: row.applied_at,
    given: row.given === 1,
    confirmed: row.confirmed === 1,
    attempts: row.attempts,
    nextAttemptAt: row.next_attempt_at,
    error: row.error_code === null ? null : { code: row.error_code, message: row.error ?? '' },
  }
}
