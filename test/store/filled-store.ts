import { closeSync, openSync, statSync, truncateSync, writeSync } from 'node:fs'
import Sqlite from 'better-sqlite3'
import { onTestFinished } from 'vitest'
import { migrate } from '../../src/store/migrate.js'
import { open } from './temporary-store.js'

const PAGE_BYTES = 4_096

/** Long enough that a few rows fill a page. */
const VALUE = 'x'.repeat(1_000)

/**
 * A store with as many rows of a setting each, whose log was not moved into the database yet.
 * @returns writes as many more
 */
export async function filledStore(file: string, rows: number): Promise<(more: number) => void> {
  await migrate(open(file))
  const sqlite = new Sqlite(file)
  onTestFinished(() => void sqlite.close())
  sqlite.pragma('wal_autocheckpoint = 0')
  const insert = sqlite.prepare(`insert into settings select 'row ' || count(*), ? from settings`)
  const write = sqlite.transaction((more: number) => {
    for (let i = 0; i < more; i += 1) insert.run(VALUE)
  })
  write(rows)
  return write
}

/** How many of those rows a database holds, read as whoever opens it would. */
export function rowsIn(file: string): number {
  const sqlite = new Sqlite(file, { readonly: true })
  try {
    return Number(sqlite.prepare(`select count(*) from settings where key like 'row %'`).pluck().get())
  } finally {
    sqlite.close()
  }
}

/** Overwrites whole pages in the middle of a database, which is still one by its first page. */
export function damage(file: string): void {
  const sqlite = new Sqlite(file)
  sqlite.pragma('wal_checkpoint(TRUNCATE)')
  sqlite.close()
  const opened = openSync(file, 'r+')
  const middle = Math.floor(statSync(file).size / PAGE_BYTES / 2) * PAGE_BYTES
  writeSync(opened, Buffer.alloc(4 * PAGE_BYTES, 0xa5), 0, 4 * PAGE_BYTES, middle)
  closeSync(opened)
}

/** Cuts a file to half of its length. */
export function cutInHalf(file: string): void {
  truncateSync(file, Math.floor(statSync(file).size / 2))
}
