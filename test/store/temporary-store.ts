import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { type Kysely, sql } from 'kysely'
import { onTestFinished } from 'vitest'
import { migrate } from '../../src/store/migrate.js'
import { openPostgres, type PostgresOptions } from '../../src/store/postgres/dialect.js'
import type { Database } from '../../src/store/schema.js'
import { openDatabase } from '../../src/store/sqlite/dialect.js'
import { createFolder } from '../setup/create-folder.js'
import { putNewStore } from '../setup/new-store.js'
import { ENGINE, postgresAt } from '../world.js'

/** A path for a database that is not there yet, in a folder that goes when the test ends. */
export function temporaryFile(): string {
  const folder = createFolder()
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, 'data', 'latchkey.db')
}

export function open(file: string, readOnly = false): Kysely<Database> {
  const db = openDatabase(file, { readOnly })
  onTestFinished(() => db.destroy())
  return db
}

/** An empty store with the newest schema. */
export async function temporaryStore(file?: string): Promise<Kysely<Database>> {
  return open(await migratedFile(file))
}

/** On PostgreSQL one database serves all histories of a process, emptied for each. */
let shared: Promise<PostgresOptions> | undefined

/**
 * Opens an empty store with the newest schema so many times, for one history of many.
 */
export async function emptyStores(count: number): Promise<readonly Kysely<Database>[]> {
  if (ENGINE === 'sqlite') {
    const file = await migratedFile()
    return Array.from({ length: count }, () => openDatabase(file, { readOnly: false }))
  }
  const options = await postgresOfHistories()
  const stores = Array.from({ length: count }, () => openPostgres(options, 'migrate', { most: 1 }))
  const tables = await (stores[0] as Kysely<Database>).introspection.getTables()
  const names = tables.filter(({ isView }) => !isView).map(({ name }) => sql.table(name))
  await sql`truncate ${sql.join(names)} restart identity`.execute(stores[0] as Kysely<Database>)
  return stores
}

/** The database of `emptyStores`. */
export function postgresOfHistories(): Promise<PostgresOptions> {
  shared ??= migratedDatabase()
  return shared
}

async function migratedDatabase(): Promise<PostgresOptions> {
  const options = await postgresAt(`histories ${process.pid}`, () => {})
  const db = openPostgres(options, 'migrate')
  await migrate(db)
  await db.destroy()
  return options
}

/** A file of an empty store with the newest schema. */
export async function migratedFile(file = temporaryFile()): Promise<string> {
  await putNewStore(file)
  return file
}
