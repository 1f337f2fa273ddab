import Sqlite from 'better-sqlite3'

/** How many events a database file that nobody uses ever held: none is ever deleted. Null if it can't be read. */
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
