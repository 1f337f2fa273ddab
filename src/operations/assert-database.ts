import { accessSync, constants } from 'node:fs'
import { LatchkeyError } from '../errors.js'
import type { PostgresOptions } from '../store/postgres/dialect.js'
import type { Db } from '../store/schema.js'
import { openDatabase } from '../store/sqlite/dialect.js'
import { AS_ITS_USER, isOfAnotherUser, isSystemRefusal, refusalText } from '../system-refusal.js'

/**
 * Checks that there is a database, which this process may use so. Inside a folder that may not be entered, a file would
 * seem to be missing.
 * @throws LatchkeyError `store_missing`; `store_unavailable` if the system refuses the answer, or access
 */
export function assertDatabase(file: string, access: 'read' | 'write'): void {
  try {
    accessSync(file, access === 'read' ? constants.R_OK : constants.R_OK | constants.W_OK)
  } catch (error) {
    if (!isSystemRefusal(error)) throw error
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') {
      const message = `There is no database at ${file}: \`latchkey serve\` creates one.`
      throw new LatchkeyError('store_missing', message)
    }
    const todo = isOfAnotherUser(error) ? `: ${AS_ITS_USER}` : ''
    const what = access === 'read' ? 'read' : 'read and written'
    const message = `the database ${file} can't be ${what}, ${refusalText(error)}${todo}`
    throw new LatchkeyError('store_unavailable', message, { cause: error })
  }
}

/** Where a store is: a file, unless there are options for PostgreSQL. */
export interface StorePlace {
  readonly file: string
  readonly postgres?: PostgresOptions | undefined
}

/**
 * Opens a store to read it, whether or not a daemon serves it: takes no lock, migrates nothing, and makes no file.
 * @param errorFor makes the error for a failed statement; if omitted, it is the database's own
 * @throws LatchkeyError as `assertDatabase` does; SQLite's own errors pass through
 */
export async function openToRead(
  { file, postgres }: StorePlace,
  errorFor?: (error: unknown) => unknown,
): Promise<Db> {
  if (postgres !== undefined) {
    const { openPostgres } = await import('../store/postgres/dialect.js')
    return openPostgres(postgres, 'read', errorFor && { errorFor })
  }
  assertDatabase(file, 'read')
  return openDatabase(file, { readOnly: true, atRest: true }, errorFor)
}
