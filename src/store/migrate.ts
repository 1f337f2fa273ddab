import { sql } from 'kysely'
import { Migrator } from 'kysely/migration'
import type { NamedMigration } from '../../migrations/column-types.js'
import { MIGRATIONS } from '../../migrations/index.js'
import { LatchkeyError } from '../errors.js'
import { engineOf } from './engine.js'
import type { Db } from './schema.js'

/** The migrator's table with the names of the steps that ran. */
const MIGRATION_TABLE = 'schema_migrations'
const MIGRATION_LOCK_TABLE = `${MIGRATION_TABLE}_lock`

export function isMigrationTable(name: string): boolean {
  return name === MIGRATION_TABLE || name === MIGRATION_LOCK_TABLE
}

/**
 * Brings the schema up to date, and returns the names of the steps that ran. All run in one transaction: if one fails,
 * the error passes through and the old schema stays intact.
 *
 * @throws {LatchkeyError} `schema_too_new`
 */
export async function migrate(db: Db, migrations: readonly NamedMigration[] = MIGRATIONS) {
  if ((await pendingMigrations(db, migrations)).length === 0) return []
  const { columnTypes } = engineOf(db)
  const steps = Object.fromEntries(migrations.map(({ name, create }) => [name, create(columnTypes)]))
  const migrator = new Migrator({
    db,
    provider: { getMigrations: async () => steps },
    migrationTableName: MIGRATION_TABLE,
    migrationLockTableName: MIGRATION_LOCK_TABLE,
  })
  const { error, results = [] } = await migrator.migrateToLatest()
  if (error !== undefined) throw error
  return results.map(({ migrationName }) => migrationName)
}

/**
 * The missing steps of the schema; changes nothing, so a reader may ask too.
 *
 * @throws {LatchkeyError} `schema_too_new` if a newer Latchkey has written it, whose tables may differ
 */
export async function pendingMigrations(db: Db, migrations: readonly NamedMigration[] = MIGRATIONS) {
  const names = migrations.map(({ name }) => name)
  const done = (await executedMigrations(db)).map(({ name }) => name)
  const unknown = done.find((name) => !names.includes(name))
  if (unknown === undefined) return names.filter((name) => !done.includes(name))
  throw new LatchkeyError(
    'schema_too_new',
    `The database was written by a newer Latchkey: this one does not know the schema step ${unknown}. Upgrade it.`,
  )
}

/**
 * Requires the schema of this program; changes nothing.
 * @param place what users call the database
 * @throws {LatchkeyError} `schema_too_old`, `schema_too_new`; `store_missing` if no daemon has used it yet
 */
export async function assertCurrent(db: Db, place: string): Promise<void> {
  const [next] = await pendingMigrations(db)
  if (next === undefined) return
  if ((await executedMigrations(db)).length === 0) {
    throw new LatchkeyError('store_missing', `There is no store in ${place}: \`latchkey serve\` creates one.`)
  }
  throw new LatchkeyError(
    'schema_too_old',
    `${place} was last used by an older Latchkey, and lacks the schema step ${next}. Start the daemon ` +
      '(`latchkey serve`), or run `latchkey migrate`.',
  )
}

/** The steps of the schema that ran, and when (ISO 8601), oldest first; none in a foreign database. */
export async function executedMigrations(db: Db) {
  const tables = await db.introspection.getTables({ withInternalKyselyTables: true })
  if (!tables.some(({ name }) => name === MIGRATION_TABLE)) return []
  const { rows } = await sql<{ name: string; timestamp: string }>`
    select name, timestamp from ${sql.table(MIGRATION_TABLE)} order by name`.execute(db)
  return rows
}
