import { type Kysely, type Migration, Migrator, type Transaction } from 'kysely'
import type { NamedMigration } from '../../migrations/column-types.js'
import { MIGRATIONS } from '../../migrations/index.js'
import { LatchkeyError } from '../errors.js'
import { COLUMN_TYPES } from './dialect.js'
import type { Database } from './schema.js'
import { getSetting, setSetting } from './settings.js'

/** Where the migrator keeps the names of the steps that ran. */
const MIGRATION_TABLE = 'schema_migrations'

/** The setting that names the newest step which whoever opens the database must know. */
const OLDEST_SCHEMA = 'oldest_schema'

/** A step of the schema, and whether programs that don't know it may go on reading and writing beside it. */
export interface SchemaStep extends NamedMigration {
  readonly olderMayOpen?: true
}

/**
 * Brings the schema up to date, and names the steps that ran. All of them run in one transaction:
 * where one fails, the error passes through and the old schema stands whole.
 *
 * @throws {LatchkeyError} `schema_too_new`
 */
export async function migrate(
  db: Kysely<Database>,
  migrations: readonly SchemaStep[] = MIGRATIONS,
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
  migrations: readonly SchemaStep[] = MIGRATIONS,
): Promise<readonly string[]> {
  const done = await executedMigrations(db)
  const known = new Set(migrations.map(({ name }) => name))
  const pending = [...known].filter((name) => !done.includes(name))
  const unknown = done.find((name) => !known.has(name))
  if (unknown === undefined || (pending.length === 0 && (await mayOpen(db, known)))) return pending
  throw new LatchkeyError(
    'schema_too_new',
    `The database was written by a newer Latchkey: this one does not know the schema step ${unknown}.`,
  )
}

/** Whether any step of the schema ever ran here. */
export async function isLatchkeySchema(db: Kysely<Database>): Promise<boolean> {
  return (await executedMigrations(db)).length > 0
}

async function mayOpen(db: Kysely<Database>, known: ReadonlySet<string>): Promise<boolean> {
  const oldest = await getSetting(db, OLDEST_SCHEMA)
  return oldest !== null && known.has(oldest)
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

function createMigrator(db: Kysely<Database>, migrations: readonly SchemaStep[]): Migrator {
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
function thenRecordOldest(step: Migration, migrations: readonly SchemaStep[]): Migration {
  return {
    async up(db) {
      await step.up(db)
      const oldest = migrations.findLast(({ olderMayOpen }) => olderMayOpen !== true)
      if (oldest !== undefined) await setSetting(db as Transaction<Database>, OLDEST_SCHEMA, oldest.name)
    },
  }
}
