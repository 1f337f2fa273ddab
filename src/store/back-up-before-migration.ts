import type { Kysely } from 'kysely'
import type { NamedMigration } from '../../migrations/column-types.js'
import { MIGRATIONS } from '../../migrations/index.js'
import { isLatchkeySchema, pendingMigrations } from './migrate.js'
import type { Database } from './schema.js'
import { backUp } from './sqlite/backup.js'

/**
 * Keeps a database as it is before the first pending step of the schema, beside it (`<file>.before-<step>`): the older
 * program can go on from there. Where nothing is pending, or the database is new, there is nothing to keep.
 *
 * @returns the backup's path, or null
 * @throws {LatchkeyError} `schema_too_new`, and whatever keeps a backup from being made
 */
export async function backUpBeforeMigration(
  db: Kysely<Database>,
  file: string,
  migrations: readonly NamedMigration[] = MIGRATIONS,
): Promise<string | null> {
  const [next] = await pendingMigrations(db, migrations)
  if (next === undefined || !(await isLatchkeySchema(db))) return null
  // An earlier one is of an attempt that failed: since then the older program may have gone on.
  const { file: made } = await backUp(file, `${file}.before-${next}`, { overwrite: true })
  return made
}
