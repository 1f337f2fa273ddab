import Sqlite from 'better-sqlite3'

/** How many events a database holds, Latchkey's or another receiver's: each keeps them in a table of that name. */
export function countEvents(databaseFile: string): number {
  const db = new Sqlite(databaseFile, { readonly: true })
  try {
    const row = db.prepare('select count(*) as count from events').get() as { count: number }
    return row.count
  } finally {
    db.close()
  }
}

/** What was acknowledged must be there. */
export function assertStored(databaseFile: string, expected: number): void {
  const stored = countEvents(databaseFile)
  if (stored !== expected) throw new Error(`${databaseFile} holds ${stored} events instead of ${expected}.`)
}
