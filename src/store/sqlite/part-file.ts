import { randomBytes } from 'node:crypto'
import { closeSync, fsyncSync, openSync } from 'node:fs'
import { removeBeside, SIDE_FILE } from './side-files.js'

/** How the names of such files end, with what SQLite keeps beside them. */
export const PART = `\\.[0-9a-f]{12}\\.part${SIDE_FILE}`

/** A new name beside a file that is in the making: it gets its own name once it is whole. */
export function partNameFor(target: string): string {
  return `${target}.${randomBytes(6).toString('hex')}.part`
}

/** Removes all that was ever begun for this file and not ended, such as by a process that was killed. */
export function removePartsOf(target: string): void {
  removeBeside(target, PART)
}

/** Waits until a file's bytes are on the disk; or, of a folder, the names in it. */
export function sync(path: string): void {
  const opened = openSync(path, 'r')
  try {
    fsyncSync(opened)
  } finally {
    closeSync(opened)
  }
}
