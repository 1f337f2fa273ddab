import { existsSync } from 'node:fs'
import { type Kysely, sql } from 'kysely'
import { Migrator } from 'kysely/migration'
import type { NamedMigration } from '../../migrations/column-types.js'
import { MIGRATIONS } from '../../migrations/index.js'
import { LatchkeyError } from '../errors.js'
import type { Database } from './schema.js'
import { backUp } from './sqlite/copy.js'
import { COLUMN_TYPES, openDatabase } from './sqlite/dialect.js'
import { lockStore, placeOf, removeLeftBehind } from './sqlite/file.js'

/** Where the migrator keeps the names of the steps that ran. */
const MIGRATION_TABLE = 'schema_migrations'

/**
 * Brings the schema up to date, and names the steps that ran. All of them run in one transaction:
 * where one fails, the error passes through and the old schema stands whole.
 *
 * @throws {LatchkeyError} `schema_too_new`
 */
export async function migrate(
  db: Kysely<Database>,
  migrations: readonly NamedMigration[] = MIGRATIONS,
): Promise<readonly string[]> {
  if ((await pendingMigrations(db, migrations)).length === 0) return []
  const { error, results = [] } = await createMigrator(db, migrations).migrateToLatest()
  if (error !== undefined) throw error
  return results.map(({ migrationName }) => migrationName)
}

/**
 * The steps that the schema lacks; changes nothing, so that a reader may ask too.
 *
 * @throws {LatchkeyError} `schema_too_new` where a newer Latchkey has been here, and its tables may mean something else
 */
export async function pendingMigrations(
  db: Kysely<Database>,
  migrations: readonly NamedMigration[] = MIGRATIONS,
): Promise<readonly string[]> {
  const done = await executedMigrations(db)
  const names = migrations.map(({ name }) => name)
  const unknown = done.find((name) => !names.includes(name))
  if (unknown === undefined) return names.filter((name) => !done.includes(name))
  throw new LatchkeyError(
    'schema_too_new',
    `The database was written by a newer Latchkey: this one does not know the schema step ${unknown}.`,
  )
}

export interface BroughtUpToDate {
  /** The steps of the schema that ran, oldest first; none where it was up to date. */
  readonly steps: readonly string[]
  /** The copy of the database as it was before; null: there was nothing to keep. */
  readonly backup: string | null
}

/**
 * Keeps a copy of the database as it is, beside it (`<file>.before-<step>`), and runs the pending steps: all of them or
 * none. The older program can go on from that copy. Where nothing is pending, or the database is new, no copy is made.
 * @throws {LatchkeyError} `schema_too_new`, and whatever keeps the copy from being made
 */
export async function bringUpToDate(
  db: Kysely<Database>,
  file: string,
  migrations: readonly NamedMigration[] = MIGRATIONS,
): Promise<BroughtUpToDate> {
  const [next] = await pendingMigrations(db, migrations)
  if (next === undefined) return { steps: [], backup: null }
  let backup: string | null = null
  if (await isLatchkeySchema(db)) {
    // An earlier copy is of an attempt that failed: since then the older program may have gone on.
    backup = (await backUp(file, `${file}.before-${next}`, { overwrite: true })).file
  }
  return { steps: await migrate(db, migrations), backup }
}

/**
 * The same for a database that nobody serves.
 * @throws {LatchkeyError} `store_missing`, `store_in_use`, `schema_too_new`
 */
export async function bringFileUpToDate(path: string): Promise<BroughtUpToDate> {
  if (!existsSync(path)) throw new LatchkeyError('store_missing', `There is no database at ${path}.`)
  const file = placeOf(path)
  const lock = lockStore(file)
  try {
    removeLeftBehind(file)
    const db = openDatabase(file, { readOnly: false })
    try {
      return await bringUpToDate(db, file)
    } finally {
      await db.destroy()
    }
  } finally {
    lock.release()
  }
}

/** Whether any step of the schema ever ran here. */
export async function isLatchkeySchema(db: Kysely<Database>): Promise<boolean> {
  return (await executedMigrations(db)).length > 0
}

/** Whether there is anything in it that acts, or answers, in the place of tables. */
export async function hasTriggers(db: Kysely<Database>): Promise<boolean> {
  const { rows } =
    await sql<object>`select 1 from sqlite_master where type in ('trigger', 'view') limit 1`.execute(db)
  return rows.length > 0
}

/** When the first step of the schema ran here, in epoch milliseconds: nothing was stored before. Null: none ever did. */
export async function schemaBegunAt(db: Kysely<Database>): Promise<number | null> {
  const row = await db
    .withTables<{ [MIGRATION_TABLE]: { timestamp: string } }>()
    .selectFrom(MIGRATION_TABLE)
    .select(({ fn }) => fn.min<string | null>('timestamp').as('first'))
    .executeTakeFirst()
  return row?.first == null ? null : Date.parse(row.first)
}

async function executedMigrations(db: Kysely<Database>): Promise<readonly string[]> {
  const tables = await db.introspection.getTables({ withInternalKyselyTables: true })
  if (!tables.some(({ name }) => name === MIGRATION_TABLE)) return []
  const rows = await db
    .withTables<{ [MIGRATION_TABLE]: { name: string } }>()
    .selectFrom(MIGRATION_TABLE)
    .select('name')
    .execute()
  return rows.map(({ name }) => name)
}

function createMigrator(db: Kysely<Database>, migrations: readonly NamedMigration[]): Migrator {
  const steps = Object.fromEntries(migrations.map(({ name, create }) => [name, create(COLUMN_TYPES)]))
  return new Migrator({
    db,
    provider: { getMigrations: async () => steps },
    migrationTableName: MIGRATION_TABLE,
    migrationLockTableName: `${MIGRATION_TABLE}_lock`,
  })
}
