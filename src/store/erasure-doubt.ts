import type { Kysely, Transaction } from 'kysely'
import type { Database } from './schema.js'
import { getSetting, removeSetting, setSetting } from './settings.js'

/*
 * Whoever was erased after a backup is back in what is restored from it, unless the list beside the database, or the
 * database that stood there, tells of them. Where neither can, the restored database is in doubt: it does not know all
 * who were erased. Its list says so in a line (see `appendDoubt`), which is the operator's to remove; the database does
 * too, and so its own list is never taken for a whole one after that line was lost with the file.
 */
const DOUBT_SETTING = 'erasures_doubted_before'

/** Erasures made before this instant (epoch milliseconds) may be missing; null: all are known. */
export async function loadDoubt(db: Kysely<Database>): Promise<number | null> {
  const before = await getSetting(db, DOUBT_SETTING)
  return before === null ? null : Number(before)
}

/** Null: they are known. */
export function saveDoubt(trx: Transaction<Database>, before: number | null): Promise<void> {
  return before === null ? removeSetting(trx, DOUBT_SETTING) : setSetting(trx, DOUBT_SETTING, String(before))
}
