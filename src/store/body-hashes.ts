import { type Kysely, type Selectable, sql } from 'kysely'
import type { Database, EventsTable } from './schema.js'
import { isAltered } from './stored-form.js'

/** A body has up to a mebibyte. */
const BODIES_AT_ONCE = 16

/** How many bodies were read, and how many of them are not those that came. */
export interface BodyCheck {
  readonly read: number
  readonly altered: number
  /** The first of those: `evt_1 in live`. */
  readonly first: string | null
}

/**
 * Compares every stored body with its hash, but for those that retention or an erasure removed or rewrote. Few in each
 * query, so that a daemon beside it is not held up.
 */
export async function compareBodies(db: Kysely<Database>): Promise<BodyCheck> {
  let [read, altered, first]: [number, number, string | null] = [0, 0, null]
  for (const [table, key] of Object.entries(KEYS)) {
    const order = sql.join(key.map((column) => sql.ref(column)))
    for (let last: BodyRow | undefined; ; ) {
      const reached = last && key.map((column) => last?.[column])
      const { rows }: { rows: BodyRow[] } = await sql<BodyRow>`
        select * from ${sql.table(table)} where ${reached ? sql`(${order}) > (${sql.join(reached)})` : sql`true`}
        order by ${order} limit ${BODIES_AT_ONCE}`.execute(db)
      last = rows.at(-1)
      if (last === undefined) break
      for (const row of rows.filter((one) => one.body_removed === null)) {
        read += 1
        if (!isAltered(row)) continue
        altered += 1
        first ??= `${row.event_id} in ${row.environment}`
      }
    }
  }
  return { read, altered, first }
}

/** What each table is walked by. */
const KEYS = { events: ['seq'], event_conflicts: ['environment', 'event_id', 'body_sha256'] } as const
type BodyRow = Selectable<EventsTable>
