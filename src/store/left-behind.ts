import { PART } from './part-file.js'
import { removeBeside, SIDE_FILE } from './side-files.js'

/*
 * What stands beside a database only while somebody is at work there. Each is a copy of it, and would keep whom an
 * erasure has removed from it since.
 */

const DRY_RUN = '\\.dry-run'
const BEFORE_STEP = '\\.before-\\d{4}-[\\w-]+'

/** Where a replay is tried: on a copy of the database, which is thrown away. */
export function dryRunOf(file: string): string {
  return `${file}.dry-run`
}

/** Removes that copy, with what SQLite keeps beside it. */
export function removeDryRun(file: string): void {
  removeBeside(file, `${DRY_RUN}${SIDE_FILE}`)
}

/**
 * Removes what earlier processes began beside a database and did not end, as where they were killed: copies on which
 * a replay was tried, and parts of those, of a restored database, and of what is kept before a step of the schema.
 * What is whole and kept on purpose stays.
 *
 * Only for whoever has just taken the store's lock: so nobody is at work on any of them.
 */
export function removeLeftBehind(file: string): void {
  removeDryRun(file)
  removeBeside(file, `(${DRY_RUN}|${BEFORE_STEP})?${PART}`)
}
