import { accessSync, constants } from 'node:fs'
import { LatchkeyError } from '../errors.js'
import { AS_ITS_USER, isOfAnotherUser, isSystemRefusal, refusalText } from '../system-refusal.js'

/** What will be done with the database. */
type Access = 'read' | 'write'

const MODES: Readonly<Record<Access, number>> = {
  read: constants.R_OK,
  write: constants.R_OK | constants.W_OK,
}

/** @throws LatchkeyError `store_missing`; `store_unavailable` if the system refuses the answer, or access */
export function assertDatabase(file: string, access: Access): void {
  if (!isDatabaseThere(file, access)) throw missingDatabase(file)
}

export function missingDatabase(file: string): LatchkeyError {
  return new LatchkeyError('store_missing', `There is no database at ${file}: \`latchkey serve\` makes one.`)
}

/**
 * Checks that there is a database. Inside a folder that may not be entered, a file would seem to be missing.
 * @throws LatchkeyError `store_unavailable` if the system refuses the answer, or access
 */
export function isDatabaseThere(file: string, access: Access): boolean {
  try {
    accessSync(file, MODES[access])
    return true
  } catch (error) {
    if (!isSystemRefusal(error)) throw error
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return false
    const todo = isOfAnotherUser(error) ? `: ${AS_ITS_USER}` : ''
    const what = access === 'read' ? 'read' : 'read and written'
    const message = `the database ${file} can't be ${what}, ${refusalText(error)}${todo}`
    throw new LatchkeyError('store_unavailable', message, { cause: error })
  }
}
