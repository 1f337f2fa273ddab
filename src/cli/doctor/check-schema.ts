import type { Kysely } from 'kysely'
import { isLatchkeyError } from '../../errors.js'
import { findDamage } from '../../store/damaged-rows.js'
import { pendingMigrations } from '../../store/migrate.js'
import type { Database } from '../../store/schema.js'
import { counted } from './amounts.js'
import { type Finding, fail, ok, warn } from './finding.js'

/** Whether this program and the database know the same tables. Nothing else can be read where they don't. */
export async function checkSchema(db: Kysely<Database>): Promise<Finding> {
  try {
    const pending = await pendingMigrations(db)
    if (pending.length === 0) return ok('schema', 'current')
    const todo = 'start the daemon, which takes the steps: `latchkey serve`'
    return warn(
      'schema',
      `older by ${counted(pending.length, 'step')}, of which the first is ${pending[0]}`,
      todo,
    )
  } catch (error) {
    if (!isLatchkeyError(error, 'schema_too_new')) throw error
    return fail('schema', withoutStop(error.message), 'run the Latchkey that wrote it, or a newer one')
  }
}

/** Whether the file is whole. */
export async function checkIntegrity(db: Kysely<Database>, thorough: boolean): Promise<readonly Finding[]> {
  const faults = await findDamage(db, { thorough })
  const [first] = faults
  if (first === undefined) return [ok('integrity', thorough ? 'sound, indexes included' : 'sound')]
  const detail = `damaged, in ${counted(faults.length, 'place')} at least: ${first}`
  return [fail('integrity', detail, 'stop the daemon, and put a backup in its place: `latchkey restore`')]
}

function withoutStop(sentence: string): string {
  return sentence.replace(/\.$/, '')
}
