/* Counts in the change log: how many gained and lost access in each stretch of time, and how many had it at its end. */

import { setImmediate as turn } from 'node:timers/promises'
import { sql } from 'kysely'
import type { EntitlementStatus } from '../entitlements/model.js'
import type { Environment } from '../provider/event.js'
import { allOf } from './bulk.js'
import { engineOf } from './engine.js'
import type { Db } from './schema.js'

const DAY_MS = 86_400_000
/** From the Monday before the epoch, which was a Thursday. */
const FIRST_MONDAY = -3 * DAY_MS

export const PERIODS = { day: DAY_MS, week: 7 * DAY_MS } as const
export type PeriodName = keyof typeof PERIODS

/** The whole days or weeks, in UTC, that a stretch of time touches; weeks begin on Monday. Epoch milliseconds. */
export function periodsIn(from: number, to: number, by: PeriodName): readonly number[] {
  const length = PERIODS[by]
  const begin = from - modulo(from - (by === 'week' ? FIRST_MONDAY : 0), length)
  return Array.from({ length: Math.ceil((to - begin) / length) }, (_, i) => begin + i * length)
}

const modulo = (number: number, by: number) => ((number % by) + by) % by

export interface SummaryQuery {
  readonly environment: Environment
  /** Undefined: every product. */
  readonly productId: string | undefined
  /** The beginnings of periods that follow one another. */
  readonly periods: readonly number[]
  readonly by: PeriodName
}

/**
 * Counts pairs of a customer and a product. `active` is counted back from what is stored now, so that it adds up with
 * the gains and losses, however much of the log an older version wrote.
 */
export async function summarizeChanges(db: Db, { environment, productId, periods, by }: SummaryQuery) {
  const length = PERIODS[by]
  const [first] = periods
  if (first === undefined) return []
  const counted = periods.map((from) => {
    return {
      from,
      to: from + length,
      gained: 0,
      lost: 0,
      lostBy: {} as Partial<Record<EntitlementStatus, number>>,
    }
  })
  const { active, cursor } = await countActive(db, environment, productId)
  let later = 0
  // A day at a time, so that no statement blocks other requests for long.
  for (let from = await nextChangeAt(db, environment, first); from !== null; ) {
    const day = from - modulo(from, DAY_MS)
    const period = counted[Math.floor((day - first) / length)]
    for (const { isActive, status, count } of await countTurns(db, { environment, productId, day, cursor })) {
      const isGain = isActive === 'true'
      if (period === undefined) later += isGain ? count : -count
      else if (isGain) period.gained += count
      else {
        const reason = JSON.parse(status) as EntitlementStatus
        period.lost += count
        period.lostBy[reason] = (period.lostBy[reason] ?? 0) + count
      }
    }
    await turn()
    from = await nextChangeAt(db, environment, day + DAY_MS)
  }
  let atEnd = active - later
  return counted
    .reverse()
    .map((period) => {
      const ended = { ...period, active: atEnd }
      atEnd -= period.gained - period.lost
      return ended
    })
    .reverse()
}

/** One statement, so that both are of the same moment. */
async function countActive(db: Db, environment: Environment, productId: string | undefined) {
  const isAsked = allOf(
    sql`environment = ${environment}`,
    productId === undefined ? undefined : sql`product_id = ${productId}`,
  )
  const { changeLog, fieldIn } = engineOf(db)
  const became = (active: boolean) => sql`
    select count(*) from ${sql.table(changeLog)} where cursor > place.cursor and ${isAsked}
      and ${fieldIn('before', 'active')} <> ${fieldIn('after', 'active')}
      and ${fieldIn('after', 'active')} = ${sql.lit(String(active))}`
  // Without what changed after the cursor: where others write at the time, some of that is stored.
  const { rows } = await sql<{ active: number; cursor: number }>`
    select (select count(*) from entitlements where ${isAsked} and active = 1) - (${became(true)}) + (${became(false)})
      as active, place.cursor from (select coalesce(max(cursor), 0) as cursor from changes) as place`.execute(
    db,
  )
  return rows[0] ?? { active: 0, cursor: 0 }
}

async function nextChangeAt(db: Db, environment: Environment, from: number): Promise<number | null> {
  const { rows } = await sql<{ at: number }>`
    select at from ${sql.table(engineOf(db).changeLog)} where environment = ${environment} and at >= ${from} order by at limit 1`.execute(
    db,
  )
  return rows[0]?.at ?? null
}

/** So many gains, or losses with this status. As JSON. */
interface Turns {
  readonly isActive: string
  readonly status: string
  readonly count: number
}

/** The gains and losses of one day, up to a cursor. */
async function countTurns(
  db: Db,
  {
    environment,
    productId,
    day,
    cursor,
  }: Pick<SummaryQuery, 'environment' | 'productId'> & Record<'day' | 'cursor', number>,
) {
  const { changeLog, fieldIn } = engineOf(db)
  const isAsked = allOf(
    sql`environment = ${environment} and at >= ${day} and at < ${day + DAY_MS} and cursor <= ${cursor}`,
    productId === undefined ? undefined : sql`product_id = ${productId}`,
  )
  const { rows } = await sql<Turns>`
    select ${fieldIn('after', 'active')} as "isActive", ${fieldIn('after', 'status')} as status, count(*) as count
    from ${sql.table(changeLog)} where ${isAsked} and ${fieldIn('before', 'active')} <> ${fieldIn('after', 'active')}
    group by 1, 2`.execute(db)
  return rows
}
