import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Kysely } from 'kysely'
import { onTestFinished } from 'vitest'
import { migrate } from '../../src/store/migrate.js'
import type { Database } from '../../src/store/schema.js'
import { openDatabase } from '../../src/store/sqlite/dialect.js'

/** A path for a database that is not there yet, in a folder that goes when the test ends. */
export function temporaryFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'latchkey-store-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, 'data', 'latchkey.db')
}

export function open(file: string, readOnly = false): Kysely<Database> {
  const db = openDatabase(file, { readOnly })
  onTestFinished(() => db.destroy())
  return db
}

/** An empty store with the newest schema. */
export async function temporaryStore(file = temporaryFile()): Promise<Kysely<Database>> {
  const db = open(file)
  await migrate(db)
  return db
}
