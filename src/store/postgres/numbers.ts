/* The numbers that transactions write beside each other: those of events, and the places of the change log. */

import { sql } from 'kysely'
import { startChangeLogEpoch } from '../changes.js'
import { alone } from '../engine.js'
import { catchUpSeqs } from '../events.js'
import type { Db, Tx } from '../schema.js'

/** Of the row of `change_log_base`: a dump keeps neither, and a database that is copied or upgraded in place both. */
const WRITTEN_HERE = sql`concat(xmin::text, ' ', tableoid::text)`

/**
 * Has new numbers follow all that were given. Where the rows came from a dump, the numbers of transactions have begun
 * again: the change log begins a new epoch, since its old cursors may meet other changes.
 */
export function settleNumbers(db: Db): Promise<void> {
  return alone(db, async (trx) => {
    await catchUpSeqs(trx)
    const { rows } = await sql<{ writtenBy: string; isHere: boolean }>`
      select written_by as "writtenBy", written_by = ${WRITTEN_HERE} as "isHere" from change_log_base`.execute(
      trx,
    )
    const [base] = rows
    if (base?.isHere) return
    // Empty: the migration has just made it.
    if (base !== undefined && base.writtenBy !== '') await startChangeLogEpoch(trx)
    await placeBehind(trx)
  })
}

/** Has the next place in the change log be behind all changes that are stored. */
export async function placeBehind(trx: Tx): Promise<void> {
  await sql`delete from change_log_base`.execute(trx)
  await sql`insert into change_log_base
    select pg_current_xact_id()::text::bigint, coalesce(max(cursor), 0) + 1,
      concat(pg_current_xact_id()::xid::text, ' ', 'change_log_base'::regclass::oid::text)
    from change_log`.execute(trx)
}
