import { PART } from './part-file.js'
import { removeBeside } from './side-files.js'

const BEFORE_STEP = '\\.before-\\d{4}-[\\w-]+'

/**
 * Removes what earlier processes began beside a database and did not end, as where they were killed: parts of a restored
 * database, and of what is kept before a step of the schema. Each is a copy of it, and would keep whom an erasure has
 * removed from it since. What is whole and kept on purpose stays.
 *
 * Only for whoever has just taken the store's lock: so nobody is at work on any of them.
 */
export function removeLeftBehind(file: string): void {
  removeBeside(file, `(${BEFORE_STEP})?${PART}`)
}
