import { type Kysely, Migrator } from 'kysely'
import type { NamedMigration } from '../../migrations/column-types.js'
import { MIGRATIONS } from '../../migrations/index.js'
import { LatchkeyError } from '../errors.js'
import { COLUMN_TYPES } from './dialect.js'
import type { Database } from './schema.js'

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
  await pendingMigrations(db, migrations)
  const { error, results = [] } = await createMigrator(db, migrations).migrateToLatest()
  if (error !== undefined) throw error
  return results.map(({ migrationName }) => migrationName)
}

/**
 * The steps that the schema lacks; changes nothing, so that a reader may ask too.
 *
 * @throws {LatchkeyError} `schema_too_new` where a newer Latchkey has been here: its tables may mean something else.
 */
export async function pendingMigrations(
  db: Kysely<Database>,
  migrations: readonly NamedMigration[] = MIGRATIONS,
): Promise<readonly string[]> {
  const done = await executedMigrations(db)
  const known = new Set(migrations.map(({ name }) => name))
  const unknown = done.find((name) => !known.has(name))
  if (unknown !== undefined) {
    throw new LatchkeyError(
      'schema_too_new',
      `The database was written by a newer Latchkey: this one does not know the schema step ${unknown}.`,
    )
  }
  return [...known].filter((name) => !done.includes(name))
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
