import { type Selectable, sql } from 'kysely'
import type { Environment } from '../provider/event.js'
import { bulkLookup, bulkStatement, bulkUpsert } from './bulk.js'
import {
  type Membership,
  type MembershipEvent,
  type MembershipKey,
  type MembershipReason,
  membershipKey,
  type NewDesire,
  neverDesired,
  SHOWN_AS,
  type ShownState,
  type StoredState,
  transition,
} from './membership.js'
import type { Db, MembershipsTable, Tx } from './schema.js'
import { saveSyncSettings, unmarkForSync } from './sync-state.js'

type Row = Selectable<MembershipsTable>

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
  const isWhere = [
    sql`1 = 1`,
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
  ].filter((one) => one !== undefined)
  const { rows } = await sql<Row>`
    select * from memberships where ${sql.join(isWhere, sql` and `)}
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

/** If more removals from a target than both of these are pending, they wait for an operator. */
export interface RemovalBound {
  readonly atMost: number
  /** Percentage of the target's members. */
  readonly percent: number
}

/** Removals of the last hour count too, since a community may also be emptied slowly. */
const BOUND_WINDOW_MS = 3_600_000

/**
 * Whether the unconfirmed removals from a target have to wait. All pending ones count, so either all of them may be
 * made or none.
 */
export async function isHeld(db: Db, target: TargetRef, { atMost, percent }: RemovalBound, now: number) {
  const pending = await count(db, sql`${isOf(target)} and ${isUnconfirmed}`)
  if (pending === 0) return false
  const isRemoved = sql`${isOf(target)} and applied = 'absent' and applied_at > ${now - BOUND_WINDOW_MS}
    and desired = 0 and given = 1`
  const removals = pending + (await count(db, sql`${isRemoved} and confirmed = 0`))
  const members = await count(db, sql`${isOf(target)} and applied = 'member'`)
  return removals > atMost && removals > ((members + (await count(db, isRemoved))) * percent) / 100
}

/**
 * How many of a target's memberships are in each state.
 * @param held whether its removals wait for an operator
 */
export async function countStates(db: Db, target: TargetRef, held: boolean) {
  const counts = { settled: 0, due: 0, retrying: 0, waiting: 0, parked: 0, unconfirmed: 0 }
  const { rows } = await sql<{ state: StoredState; unconfirmed: number; count: number }>`
    select state, case when ${isUnconfirmed} then 1 else 0 end as unconfirmed, count(*) as count from memberships
    where ${isOf(target)} group by state, unconfirmed`.execute(db)
  for (const { state, unconfirmed, count } of rows) {
    counts[held && unconfirmed === 1 ? 'unconfirmed' : SHOWN_AS[state]] += count
  }
  return counts
}

async function count(db: Db, where: ReturnType<typeof isOf>): Promise<number> {
  const { rows } = await sql<{ n: number }>`select count(*) as n from memberships where ${where}`.execute(db)
  return rows[0]?.n ?? 0
}

export function statesShownAs(shown: ShownState): readonly StoredState[] {
  if (shown === 'unconfirmed') return OPEN_STATES
  return (Object.keys(SHOWN_AS) as StoredState[]).filter((state) => SHOWN_AS[state] === shown)
}

/** Bounds how long one transaction blocks deliveries. */
const MAX_PER_TRANSACTION = 500

export interface Desired {
  /** Each membership at most once. */
  readonly desires: readonly NewDesire[]
  /** They include the change log up to here (`formatCursor`). */
  readonly cursor: string
  /** They include the marks up to here (`loadSyncMarks`). */
  readonly marksUpTo: number
}

/** Saves the desired state, and marks the changes and marks that caused it as done. */
export async function saveDesires(trx: Tx, { desires, cursor, marksUpTo }: Desired, now: number) {
  const steps = desires.map((key) => ({ key, event: { kind: 'desired', ...key } as const }))
  await stepMemberships(trx, steps, now)
  await unmarkForSync(trx, marksUpTo)
  await saveSyncSettings(trx, { cursor })
}

export interface MembershipStep {
  readonly key: MembershipKey
  readonly event: MembershipEvent
}

/**
 * Saves steps of memberships; each membership occurs at most once.
 * @returns for each step whether it changed anything; if not, its call must not begin
 */
export async function stepMemberships(trx: Tx, steps: readonly MembershipStep[], now: number) {
  const keys = steps.map(({ key }) => key)
  const stored = await loadMemberships(trx, keys)
  const after = steps.map(({ key, event }) => {
    const first = event.kind === 'desired' ? neverDesired(key, event, now) : null
    const membership = stored.get(membershipKey(key)) ?? first
    return membership && transition(membership, event, now)
  })
  await save(trx, after)
  return after.map((one) => one !== null)
}

/** Selects what to retry; an omitted field allows every value. */
export interface RetryFilter extends Pick<MembershipFilter, 'environments' | 'target'> {
  readonly customerId?: string
}

/**
 * Makes failed memberships due now; `healing`: only those that sweeps retry.
 * @returns whether there may be more
 */
export async function retryMemberships(
  trx: Tx,
  { customerId, healing, ...filter }: RetryFilter & { readonly healing?: true },
  now: number,
): Promise<boolean> {
  const failed: MembershipFilter = {
    ...filter,
    hasFailed: true,
    ...(customerId !== undefined && { customerIds: [customerId] }),
    ...(healing && { states: ['waiting', 'stuck'] }),
  }
  const found = await findMemberships(trx, failed, MAX_PER_TRANSACTION)
  const after = found.map((one) => transition(one, { kind: 'retry' }, now))
  await save(trx, after)
  return found.length === MAX_PER_TRANSACTION
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
async function save(trx: Tx, changed: readonly (Membership | null)[]): Promise<void> {
  const memberships = changed.filter((one) => one !== null)
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
