import { type Kysely, type RawBuilder, type Selectable, sql } from 'kysely'
import type { Environment } from '../provider/event.js'
import {
  type Membership,
  type MembershipKey,
  membershipOf,
  WAITS_FOR_CUSTOMER,
  WAITS_FOR_OPERATOR,
} from './membership.js'
import type { TargetRef } from './membership-lists.js'
import type { Database } from './schema.js'
import type { MembershipsTable } from './sync-schema.js'

/**
 * What a membership waits for, beside the bound on removals: `unsettled` are those that a call is to be made for
 * now or after a failure.
 */
const IS = {
  settled: sql`parked is null and (next_attempt_at is null or (desired = 1 and applied = 'member'))`,
  waiting: WAITS_FOR_CUSTOMER,
  parked: WAITS_FOR_OPERATOR,
  retrying: sql`parked is null and next_attempt_at is not null and last_error is not null
    and not (desired = 1 and applied = 'member')`,
  due: sql`parked is null and next_attempt_at is not null and last_error is null
    and not (desired = 1 and applied = 'member')`,
} as const
export type StoredState = keyof typeof IS

const IS_OPEN_REMOVAL = sql`desired = 0 and confirmed = 0 and parked is null and next_attempt_at is not null`

export interface MembershipPageQuery {
  /** Left out: both. */
  readonly environments?: readonly Environment[]
  readonly target?: string
  readonly customerId?: string
  readonly state?: StoredState | 'unconfirmed'
  readonly after?: MembershipKey
  readonly limit: number
}

/** In the order of their keys. @param held where removals wait for an operator */
export async function loadMembershipPage(
  db: Kysely<Database>,
  query: MembershipPageQuery,
  held: readonly TargetRef[],
): Promise<readonly Membership[]> {
  const { environments, target, customerId, state, after, limit } = query
  const isHeld = sql`(${IS_OPEN_REMOVAL} and ${isOneOf(held)})`
  const conditions: (RawBuilder<unknown> | null)[] = [
    environments === undefined ? null : sql`environment in (${sql.join(environments)})`,
    target === undefined ? null : sql`target = ${target}`,
    customerId === undefined ? null : sql`customer_id = ${customerId}`,
    after === undefined
      ? null
      : sql`(environment, target, account_id) > (${after.environment}, ${after.target}, ${after.accountId})`,
    state === undefined ? null : state === 'unconfirmed' ? isHeld : sql`${IS[state]} and not ${isHeld}`,
  ]
  const { rows } = await sql<Selectable<MembershipsTable>>`
    select * from memberships
    where ${sql.join([sql`1 = 1`, ...conditions.filter((one) => one !== null)], sql` and `)}
    order by environment, target, account_id limit ${limit}`.execute(db)
  return rows.map(membershipOf)
}

function isOneOf(targets: readonly TargetRef[]): RawBuilder<unknown> {
  const keys = targets.map(({ environment, target }) => sql`(${environment}, ${target})`)
  return keys.length === 0 ? sql`1 = 0` : sql`(environment, target) in (values ${sql.join(keys)})`
}

/**
 * How many of a target's memberships are in each state.
 * @param held whether its removals wait for an operator
 */
export async function countStates(
  db: Kysely<Database>,
  { environment, target }: TargetRef,
  held: boolean,
): Promise<Readonly<Record<StoredState | 'unconfirmed', number>>> {
  const count = async (condition: RawBuilder<unknown>): Promise<number> => {
    const { rows } = await sql<{ count: number }>`
      select count(*) as count from memberships
      where environment = ${environment} and target = ${target} and ${condition}`.execute(db)
    return Number(rows[0]?.count)
  }
  const isHeld = held ? sql`(${IS_OPEN_REMOVAL})` : sql`1 = 0`
  const all = await count(sql`applied in ('unknown', 'member', 'absent')`)
  const waiting = await count(IS.waiting)
  const parked = await count(IS.parked)
  const unconfirmed = await count(isHeld)
  const due = await count(sql`${IS.due} and not ${isHeld}`)
  const retrying = await count(sql`${IS.retrying} and not ${isHeld}`)
  const settled = all - waiting - parked - unconfirmed - due - retrying
  return { settled, due, retrying, waiting, parked, unconfirmed }
}

/** Every call that is to be made, whenever it comes due: in the order of their keys, at most `limit` after `after`. */
export async function loadPlanned(
  db: Kysely<Database>,
  { environment, target }: TargetRef,
  after: string,
  limit: number,
): Promise<readonly Membership[]> {
  const { rows } = await sql<Selectable<MembershipsTable>>`
    select * from memberships
    where environment = ${environment} and target = ${target} and account_id > ${after}
      and next_attempt_at is not null and not (desired = 1 and applied = 'member')
    order by account_id limit ${limit}`.execute(db)
  return rows.map(membershipOf)
}
