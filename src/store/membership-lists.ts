import { type Kysely, type RawBuilder, type Selectable, sql } from 'kysely'
import type { Environment } from '../provider/event.js'
import { type Failure, failureOf, type Membership, type MembershipKey, membershipOf } from './membership.js'
import type { Database } from './schema.js'
import type { MembershipsTable } from './sync-schema.js'

/** A target as its memberships name it. */
export interface TargetRef {
  readonly environment: Environment
  readonly target: string
}

/** Every target that has memberships, configured or not. */
export async function loadTargetRefs(db: Kysely<Database>): Promise<readonly TargetRef[]> {
  return db.selectFrom('memberships').select(['environment', 'target']).distinct().execute()
}

/** That a platform has said to wait, as its memberships tell: until when, in epoch milliseconds, and in what words. */
export interface StandingWait {
  readonly target: string
  readonly until: number
  readonly failure: Failure
}

/** The longest wait of each target that is not over by `now` and began with this failure. */
export async function loadStandingWaits(
  db: Kysely<Database>,
  code: string,
  now: number,
): Promise<readonly StandingWait[]> {
  const rows = await db
    .selectFrom('memberships')
    .select(['target', 'last_error', sql<number>`max(next_attempt_at)`.as('until')])
    .where('next_attempt_at', '>', now)
    .where(sql<boolean>`substr(last_error, 1, ${code.length + 1}) = ${`${code}:`}`)
    .groupBy('target')
    .execute()
  return rows.flatMap(({ target, last_error, until }) => {
    const failure = failureOf(last_error)
    return failure === null ? [] : [{ target, until, failure }]
  })
}

/** What of a target is due, in the order in which the index keeps it. */
const DUE = {
  give: sql`desired = 1 and applied in ('unknown', 'absent') and confirmed = 0`,
  take: sql`desired = 0 and applied in ('unknown', 'member') and confirmed in (0, 1) and given = 1`,
  agreedTake: sql`desired = 0 and applied in ('unknown', 'member') and confirmed = 1 and given = 1`,
  recheck: sql`desired = 1 and applied = 'member' and confirmed = 0`,
} as const
export type DueKind = keyof typeof DUE

/** At most `limit` memberships of one kind that are due by `now`. */
export async function loadDueMemberships(
  db: Kysely<Database>,
  { environment, target }: TargetRef,
  kind: DueKind,
  now: number,
  limit: number,
): Promise<readonly Membership[]> {
  const { rows } = await sql<Selectable<MembershipsTable>>`
    select * from memberships
    where environment = ${environment} and target = ${target} and ${DUE[kind]} and next_attempt_at <= ${now}
    limit ${limit}`.execute(db)
  return rows.map(membershipOf)
}

/** When the next membership of a target comes due, in epoch milliseconds; null: none does. */
export async function nextDueAt(
  db: Kysely<Database>,
  { environment, target }: TargetRef,
  kinds: readonly DueKind[],
): Promise<number | null> {
  const conditions = sql.join(
    kinds.map((kind) => sql`(${DUE[kind]})`),
    sql` or `,
  )
  const { rows } = await sql<{ at: number | null }>`
    select min(next_attempt_at) as at from memberships
    where environment = ${environment} and target = ${target} and next_attempt_at is not null and (${conditions})
  `.execute(db)
  return rows[0]?.at ?? null
}

/** How many calls to a platform are to be made, or to be made again after a failure. */
export async function countUnderWay(db: Kysely<Database>, platform: string): Promise<number> {
  const row = await db
    .selectFrom('memberships')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('next_attempt_at', 'is not', null)
    .where(sql<boolean>`${IS_OF} = ${platform} and not (desired = 1 and applied = 'member')`)
    .executeTakeFirstOrThrow()
  return Number(row.count)
}

/** The newest failure with one of these codes of a call to a platform that is to be made again; null: none. */
export async function findOpenFailure(
  db: Kysely<Database>,
  platform: string,
  codes: readonly string[],
): Promise<Failure | null> {
  const row = await db
    .selectFrom('memberships')
    .select('last_error')
    .where('next_attempt_at', 'is not', null)
    .where('last_error', 'is not', null)
    .where(sql<boolean>`${IS_OF} = ${platform}`)
    .where(sql<string>`substr(last_error, 1, instr(last_error, ':') - 1)`, 'in', codes)
    .orderBy('next_attempt_at', 'desc')
    .limit(1)
    .executeTakeFirst()
  return failureOf(row?.last_error ?? null)
}

/** The platform that a row's target is of. */
const IS_OF = sql`substr(target, 1, instr(target, ':') - 1)`

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
  { environment, target }: TargetRef,
  since: number,
): Promise<Removals> {
  const count = async (condition: RawBuilder<unknown>): Promise<number> => {
    const { rows } = await sql<{ count: number }>`
      select count(*) as count from memberships
      where environment = ${environment} and target = ${target} and ${condition}`.execute(db)
    return Number(rows[0]?.count)
  }
  const pending = await count(
    sql`desired = 0 and applied in ('unknown', 'member') and confirmed = 0 and given = 1 and next_attempt_at is not null`,
  )
  if (pending === 0) return { pending, made: 0, members: 0 }
  const madeSince = sql`applied = 'absent' and applied_at > ${since} and desired = 0 and given = 1`
  return {
    pending,
    made: await count(sql`${madeSince} and confirmed = 0`),
    members: (await count(sql`applied = 'member'`)) + (await count(madeSince)),
  }
}

/** Members that should be, in the order of their accounts. */
export async function loadSettledMembers(
  db: Kysely<Database>,
  { environment, target }: TargetRef,
  after: string,
  limit: number,
): Promise<readonly MembershipKey[]> {
  const rows = await db
    .selectFrom('memberships')
    .select('account_id')
    .where('environment', '=', environment)
    .where('target', '=', target)
    .where('account_id', '>', after)
    .where('desired', '=', 1)
    .where('applied', '=', 'member')
    .orderBy('account_id')
    .limit(limit)
    .execute()
  return rows.map((row) => ({ environment, target, accountId: row.account_id }))
}
