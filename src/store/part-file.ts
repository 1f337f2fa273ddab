import { randomBytes } from 'node:crypto'
import { closeSync, existsSync, fsyncSync, openSync, readdirSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

/** What SQLite may keep beside a database file. */
const SIDE_FILE = '(-wal|-shm|-journal)?'

/** A new name beside a file that is in the making: it gets its own name once it is whole. */
export function partNameFor(target: string): string {
  return `${target}.${randomBytes(6).toString('hex')}.part`
}

/** Removes all that was ever begun for this file and not ended, such as by a process that was killed. */
export function removePartsOf(target: string): void {
  const folder = dirname(target)
  if (!existsSync(folder)) return
  const name = basename(target).replaceAll(/[^\w-]/g, '\\$&')
  const part = new RegExp(`^${name}\\.[0-9a-f]{12}\\.part${SIDE_FILE}$`)
  for (const found of readdirSync(folder)) {
    if (part.test(found)) rmSync(join(folder, found), { force: true })
  }
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
