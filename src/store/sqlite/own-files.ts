import { existsSync, realpathSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { LatchkeyError } from '../../errors.js'

/** What stands beside a database file, and belongs to it. */
const SUFFIXES = ['', '-wal', '-shm', '-journal', '.lock', '.erasures']

/**
 * Sees that what is written to `target`, in place of what may be there, takes the place of nothing that belongs to the
 * database: under whatever name, since links lead there too, and whether it is there by now or not.
 * @throws {LatchkeyError} `usage`
 */
export function assertNotOwnFile(database: string, target: string): void {
  // The side files stand beside the database itself, not beside a link to it.
  const places = [database, placeNamed(database)]
  const own = places.flatMap((place) => SUFFIXES.map((suffix) => `${place}${suffix}`))
  if (own.some((file) => leadsTo(file, target))) {
    throw new LatchkeyError('usage', `${target} belongs to the database itself: name another file.`)
  }
}

/** Whether two paths lead to one file, or would: nothing need stand at either. */
export function leadsTo(one: string, other: string): boolean {
  return placeNamed(one) === placeNamed(other) || (existsSync(other) && isSameFile(one, other))
}

export function isSameFile(one: string, other: string): boolean {
  const a = statSync(one, { throwIfNoEntry: false })
  const b = statSync(other, { throwIfNoEntry: false })
  return a !== undefined && b !== undefined && a.dev === b.dev && a.ino === b.ino
}

/** The path without the links on its way, as far as it leads anywhere. */
function placeNamed(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    const folder = dirname(path)
    return folder === path ? path : join(placeNamed(folder), basename(path))
  }
}
