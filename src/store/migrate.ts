import { existsSync } from 'node:fs'
import { type Kysely, sql, type Transaction } from 'kysely'
import { type Migration, Migrator } from 'kysely/migration'
import type { NamedMigration } from '../../migrations/column-types.js'
import { MIGRATIONS } from '../../migrations/index.js'
import { compareText } from '../entitlements/order.js'
import { LatchkeyError } from '../errors.js'
import type { Database } from './schema.js'
import { getSetting, setSetting } from './settings.js'
import { backUp } from './sqlite/copy.js'
import { COLUMN_TYPES, openDatabase } from './sqlite/dialect.js'
import { lockStore, placeOf, removeLeftBehind } from './sqlite/file.js'

/** Where the migrator keeps the names of the steps that ran. */
const MIGRATION_TABLE = 'schema_migrations'

/** The setting that tells programs which don't know every step whether they may open the database all the same. */
const OLDEST_SCHEMA = 'oldest_schema'

interface OldestSchema {
  /** The newest step when this was written: said of no other schema. */
  readonly upTo: string
  /** The newest step that whoever opens the database must know. */
  readonly mustKnow: string
}

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
  const known = new Set(migrations.map(({ name }) => name))
  const pending = [...known].filter((name) => !done.includes(name))
  const unknown = done.find((name) => !known.has(name))
  if (unknown === undefined || (pending.length === 0 && (await mayOpen(db, done, known)))) return pending
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

async function mayOpen(
  db: Kysely<Database>,
  done: readonly string[],
  known: ReadonlySet<string>,
): Promise<boolean> {
  const told = await getSetting(db, OLDEST_SCHEMA)
  if (told === null) return false
  const { upTo, mustKnow } = JSON.parse(told) as OldestSchema
  return upTo === [...done].sort(compareText).at(-1) && known.has(mustKnow)
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
  const last = migrations.at(-1)
  if (last !== undefined) steps[last.name] = thenRecordOldest(last.create(COLUMN_TYPES), migrations)
  return new Migrator({
    db,
    provider: { getMigrations: async () => steps },
    migrationTableName: MIGRATION_TABLE,
    migrationLockTableName: `${MIGRATION_TABLE}_lock`,
  })
}

/** Within the last step, and so in the one transaction of all: the record is never older than the schema. */
function thenRecordOldest(step: Migration, migrations: readonly NamedMigration[]): Migration {
  return {
    async up(db) {
      await step.up(db)
      const oldest = migrations.findLast(({ olderMayOpen }) => olderMayOpen !== true)
      const upTo = migrations.at(-1)
      if (oldest === undefined || upTo === undefined) return
      const told: OldestSchema = { upTo: upTo.name, mustKnow: oldest.name }
      await setSetting(db as Transaction<Database>, OLDEST_SCHEMA, JSON.stringify(told))
    },
  }
}
