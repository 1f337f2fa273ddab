import { type Kysely, sql } from 'kysely'
import type { Database } from './schema.js'

/** A damaged file has either a few faults or no end of them. */
const FAULTS_AT_MOST = 20

/**
 * What SQLite finds wrong with the file, a line each; none where it is sound. Reads all of it.
 * `thorough` compares every index with its table too, which takes several times as long.
 */
export async function findDamage(
  db: Kysely<Database>,
  { thorough }: { readonly thorough: boolean },
): Promise<readonly string[]> {
  const pragma = sql.raw(thorough ? 'integrity_check' : 'quick_check')
  const { rows } = await sql<Record<string, string>>`pragma ${pragma}(${sql.lit(FAULTS_AT_MOST)})`.execute(db)
  const found = rows.flatMap((row) => Object.values(row)).flatMap((text) => text.split('\n'))
  return found.filter((line) => line !== 'ok')
}
