import { type Kysely, type RawBuilder, type Selectable, sql } from 'kysely'
import type { Environment } from '../provider/event.js'
import { bulkStatement } from './bulk.js'
import {
  type Failure,
  type Membership,
  type MembershipKey,
  type MembershipReason,
  membershipKey,
  SHOWN_AS,
  type ShownState,
  type StoredState,
} from './membership.js'
import type { Database } from './schema.js'
import type { MembershipsTable } from './sync-schema.js'

/** A target as its memberships name it. */
export interface TargetRef {
  readonly environment: Environment
  readonly target: string
}

export const isOf = ({ environment, target }: TargetRef) =>
  sql`environment = ${environment} and target = ${target}`

/** A call is to be made, now or after a failure. */
const IS_OPEN = sql`state in ('due', 'retrying')`
/** A removal that is to be made, and that nobody has agreed to. */
const IS_OPEN_REMOVAL = sql`state in ('due', 'retrying') and desired = 0 and confirmed = 0`

/** Every target that has memberships, configured or not. */
export async function loadTargetRefs(db: Kysely<Database>): Promise<readonly TargetRef[]> {
  return db.selectFrom('memberships').select(['environment', 'target']).distinct().execute()
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
  const rows = await selectMemberships(db, keys.map(keyRow))
  return new Map(rows.map(membershipOf).map((one) => [membershipKey(one), one]))
}

function byColumn(column: 'customer_id' | 'account_id') {
  const selectBy = bulkStatement(
    (keys) => sql<Selectable<MembershipsTable>>`
      select * from memberships where (environment, ${sql.ref(column)}) in (${keys})`,
  )
  return async (
    db: Kysely<Database>,
    environment: Environment,
    ids: readonly string[],
  ): Promise<readonly Membership[]> => {
    const rows = await selectBy(
      db,
      ids.map((id) => [environment, id]),
    )
    return rows.map(membershipOf)
  }
}

/** The memberships that were last looked at for these customers. */
export const loadMembershipsOf = byColumn('customer_id')

/** All memberships of these accounts. */
export const loadMembershipsOfAccounts = byColumn('account_id')

/** What of a target is due, in the order in which the index keeps it. */
const IS_DUE = {
  give: sql`state in ('due', 'retrying') and desired = 1 and confirmed = 0`,
  take: IS_OPEN_REMOVAL,
  agreedTake: sql`state in ('due', 'retrying') and desired = 0 and confirmed = 1`,
  recheck: sql`state = 'recheck' and desired = 1 and confirmed = 0`,
} as const
export type DueKind = keyof typeof IS_DUE

/** At most `limit` memberships of one kind that are due by `now`. */
export async function loadDueMemberships(
  db: Kysely<Database>,
  target: TargetRef,
  kind: DueKind,
  now: number,
  limit: number,
): Promise<readonly Membership[]> {
  return membershipsWhere(
    db,
    sql`${isOf(target)} and ${IS_DUE[kind]} and next_attempt_at <= ${now} limit ${limit}`,
  )
}

/** When the next membership of a target comes due, in epoch milliseconds; null: none does. */
export async function nextDueAt(
  db: Kysely<Database>,
  target: TargetRef,
  kinds: readonly DueKind[],
): Promise<number | null> {
  const conditions = kinds.map((kind) => sql`(${IS_DUE[kind]})`)
  const { rows } = await sql<{ at: number | null }>`
    select min(next_attempt_at) as at from memberships
    where ${isOf(target)} and (${sql.join(conditions, sql` or `)})`.execute(db)
  return rows[0]?.at ?? null
}

/** The longest wait of each target that is not over by `now` (epoch milliseconds) and began with this failure. */
export async function loadOpenWaits(
  db: Kysely<Database>,
  code: string,
  now: number,
): Promise<readonly { readonly target: string; readonly until: number; readonly failure: Failure }[]> {
  const { rows } = await sql<{ target: string; error: string; until: number }>`
    select target, error, max(next_attempt_at) as until from memberships
    where next_attempt_at > ${now} and error_code = ${code} group by target`.execute(db)
  return rows.map(({ target, error, until }) => ({ target, until, failure: { code, message: error } }))
}

/** The platform that a row's target is of. */
const PLATFORM = sql`substr(target, 1, instr(target, ':') - 1)`

/** How many calls to a platform are to be made, or to be made again after a failure. */
export async function countUnderWay(db: Kysely<Database>, platform: string): Promise<number> {
  return count(db, sql`${IS_OPEN} and ${PLATFORM} = ${platform}`)
}

/** The newest failure with one of these codes of a call to a platform that is to be made again; null: none. */
export async function findOpenFailure(
  db: Kysely<Database>,
  platform: string,
  codes: readonly string[],
): Promise<Failure | null> {
  const [found] = await membershipsWhere(
    db,
    sql`next_attempt_at is not null and error_code in (${sql.join(codes)}) and ${PLATFORM} = ${platform}
      order by next_attempt_at desc limit 1`,
  )
  return found?.error ?? null
}

/** What the bound on removals is about. */
export interface Removals {
  /** Waiting to be made, and agreed to by nobody. */
  readonly pending: number
  /** Made since, and agreed to by nobody. */
  readonly made: number
  /** All that were members at the beginning. */
  readonly members: number
}

/** @param since epoch milliseconds */
export async function countRemovals(
  db: Kysely<Database>,
  target: TargetRef,
  since: number,
): Promise<Removals> {
  const pending = await count(db, sql`${isOf(target)} and ${IS_OPEN_REMOVAL}`)
  if (pending === 0) return { pending, made: 0, members: 0 }
  const madeSince = sql`${isOf(target)} and applied = 'absent' and applied_at > ${since} and desired = 0 and given = 1`
  return {
    pending,
    made: await count(db, sql`${madeSince} and confirmed = 0`),
    members: (await count(db, sql`${isOf(target)} and applied = 'member'`)) + (await count(db, madeSince)),
  }
}

/** Which a sweep compares: `members` should be, and are; `gone` were not there when they should have been removed. */
const IS_SWEPT = {
  members: sql`desired = 1 and applied = 'member'`,
  gone: sql`state = 'gone'`,
} as const

/** In the order of their accounts. */
export async function loadSwept(
  db: Kysely<Database>,
  target: TargetRef,
  which: keyof typeof IS_SWEPT,
  after: string,
  limit: number,
): Promise<readonly MembershipKey[]> {
  return membershipsWhere(
    db,
    sql`${isOf(target)} and account_id > ${after} and ${IS_SWEPT[which]} order by account_id limit ${limit}`,
  )
}

/** Every call that is to be made, whenever it comes due, in the order of their accounts. */
export async function loadPlanned(
  db: Kysely<Database>,
  target: TargetRef,
  after: string,
  limit: number,
): Promise<readonly Membership[]> {
  return membershipsWhere(
    db,
    sql`${isOf(target)} and account_id > ${after} and ${IS_OPEN} order by account_id limit ${limit}`,
  )
}

function isShownAs(state: Exclude<ShownState, 'unconfirmed'>): RawBuilder<unknown> {
  const stored = Object.entries(SHOWN_AS).flatMap(([name, shown]) => (shown === state ? [name] : []))
  return sql`state in (${sql.join(stored)})`
}

export interface MembershipPageQuery {
  /** Left out: both. */
  readonly environments?: readonly Environment[]
  readonly target?: string
  readonly customerId?: string
  readonly state?: ShownState
  readonly after?: MembershipKey
  readonly limit: number
}

/** In the order of their keys. @param held where removals wait for an operator */
export async function loadMembershipPage(
  db: Kysely<Database>,
  { environments, target, customerId, state, after, limit }: MembershipPageQuery,
  held: readonly TargetRef[],
): Promise<readonly Membership[]> {
  const keys = held.map((one) => sql`(${one.environment}, ${one.target})`)
  const isHeld =
    keys.length === 0
      ? sql`1 = 0`
      : sql`(${IS_OPEN_REMOVAL} and (environment, target) in (values ${sql.join(keys)}))`
  return membershipsWhere(
    db,
    sql`${allOf([
      environments && sql`environment in (${sql.join(environments)})`,
      target && sql`target = ${target}`,
      customerId && sql`customer_id = ${customerId}`,
      after && isAfter(after),
      state && (state === 'unconfirmed' ? isHeld : sql`${isShownAs(state)} and not ${isHeld}`),
    ])} order by environment, target, account_id limit ${limit}`,
  )
}

/**
 * How many of a target's memberships are in each state.
 * @param held whether its removals wait for an operator
 */
export async function countStates(
  db: Kysely<Database>,
  target: TargetRef,
  held: boolean,
): Promise<Readonly<Record<ShownState, number>>> {
  const counts = { settled: 0, due: 0, retrying: 0, waiting: 0, parked: 0, unconfirmed: 0 }
  const { rows } = await sql<{ state: StoredState; is_removal: number; count: number }>`
    select state, desired = 0 and confirmed = 0 as is_removal, count(*) as count from memberships
    where ${isOf(target)} group by state, is_removal`.execute(db)
  for (const { state, is_removal, count } of rows) {
    const shown = SHOWN_AS[state]
    const isHeld = held && is_removal === 1 && (shown === 'due' || shown === 'retrying')
    counts[isHeld ? 'unconfirmed' : shown] += Number(count)
  }
  return counts
}

/** @param where may end with an order and a limit */
export async function membershipsWhere(
  db: Kysely<Database>,
  where: RawBuilder<unknown>,
): Promise<readonly Membership[]> {
  const { rows } = await sql<Selectable<MembershipsTable>>`select * from memberships where ${where}`.execute(
    db,
  )
  return rows.map(membershipOf)
}

async function count(db: Kysely<Database>, where: RawBuilder<unknown>): Promise<number> {
  const { rows } = await sql<{ n: number }>`select count(*) as n from memberships where ${where}`.execute(db)
  return Number(rows[0]?.n)
}

export function allOf(conditions: readonly (RawBuilder<unknown> | '' | false | null | undefined)[]) {
  return sql.join(
    [sql`1 = 1`, ...conditions.filter((one) => typeof one === 'object' && one !== null)],
    sql` and `,
  )
}

export function isAfter({ environment, target, accountId }: MembershipKey): RawBuilder<unknown> {
  return sql`(environment, target, account_id) > (${environment}, ${target}, ${accountId})`
}

export function keyRow({ environment, target, accountId }: MembershipKey) {
  return [environment, target, accountId] as const
}

function membershipOf(row: Selectable<MembershipsTable>): Membership {
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
    mayHeal: row.may_heal === 1,
    error: row.error_code === null ? null : { code: row.error_code, message: row.error ?? '' },
  }
}
