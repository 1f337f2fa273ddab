import { closeSync, openSync, writeSync } from 'node:fs'
import Sqlite from 'better-sqlite3'

export const PAGE_BYTES = 4_096

/** The page that leads to all others of a table or an index. */
export function rootPage(file: string, name: string): number {
  const db = new Sqlite(file, { readonly: true })
  try {
    const query = db.prepare<[string], number>("select pageno from dbstat where name = ? and path = '/'")
    return query.pluck().get(name) as number
  } finally {
    db.close()
  }
}

/** Writes zeros over pages, the first of which is 1. */
export function overwritePages(file: string, from: number, to = from): void {
  const opened = openSync(file, 'r+')
  writeSync(opened, Buffer.alloc((to - from + 1) * PAGE_BYTES), 0, undefined, (from - 1) * PAGE_BYTES)
  closeSync(opened)
}
