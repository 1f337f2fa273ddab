import Sqlite from 'better-sqlite3'
import type { Kysely } from 'kysely'
import type { Database } from './schema.js'

/** How many events there ever were: none is ever taken out. */
export async function eventsEverStored(db: Kysely<Database>): Promise<number> {
  const row = await db
    .selectFrom('events')
    .select((eb) => eb.fn.max('seq').as('newest'))
    .executeTakeFirst()
  return Number(row?.newest ?? 0)
}

/** The same of a database file that nobody uses; null where that can't be read. */
export function eventsEverStoredIn(file: string): number | null {
  try {
    const sqlite = new Sqlite(file, { readonly: true, fileMustExist: true })
    try {
      return Number(sqlite.prepare('select coalesce(max(seq), 0) from events').pluck().get())
    } finally {
      sqlite.close()
    }
  } catch {
    return null
  }
}
