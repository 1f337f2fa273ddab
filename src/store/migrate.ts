import type { Kysely } from 'kysely'
import { Migrator } from 'kysely/migration'
import type { NamedMigration } from '../../migrations/column-types.js'
import { MIGRATIONS } from '../../migrations/index.js'
import { LatchkeyError } from '../errors.js'
import { engineOf } from './engine.js'
import type { Database } from './schema.js'

/** Where the migrator keeps the names of the steps that ran. */
const MIGRATION_TABLE = 'schema_migrations'

/**
 * Brings the schema up to date, and names the steps that ran. All of them run in one transaction:
 * where one fails, the error passes through and the old schema stays whole.
 *
 * @throws {LatchkeyError} `schema_too_new`
 */
export async function migrate(
  db: Kysely<Database>,
  migrations: readonly NamedMigration[] = MIGRATIONS,
): Promise<readonly string[]> {
  if ((await pendingMigrations(db, migrations)).length === 0) return []
  const { columnTypes } = engineOf(db)
  const steps = Object.fromEntries(migrations.map(({ name, create }) => [name, create(columnTypes)]))
  const migrator = new Migrator({
    db,
    provider: { getMigrations: async () => steps },
    migrationTableName: MIGRATION_TABLE,
    migrationLockTableName: `${MIGRATION_TABLE}_lock`,
  })
  const { error, results = [] } = await migrator.migrateToLatest()
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
  const names = migrations.map(({ name }) => name)
  const done = (await executedMigrations(db)).map(({ name }) => name)
  const unknown = done.find((name) => !names.includes(name))
  if (unknown === undefined) return names.filter((name) => !done.includes(name))
  throw new LatchkeyError(
    'schema_too_new',
    `The database was written by a newer Latchkey: this one does not know the schema step ${unknown}.`,
  )
}

/** The steps of the schema that ran, and when (ISO 8601), oldest first; none in a database of something else. */
export async function executedMigrations(
  db: Kysely<Database>,
): Promise<readonly { readonly name: string; readonly timestamp: string }[]> {
  const tables = await db.introspection.getTables({ withInternalKyselyTables: true })
  if (!tables.some(({ name }) => name === MIGRATION_TABLE)) return []
  return db
    .withTables<{ [MIGRATION_TABLE]: { name: string; timestamp: string } }>()
    .selectFrom(MIGRATION_TABLE)
    .select(['name', 'timestamp'])
    .orderBy('name')
    .execute()
}
