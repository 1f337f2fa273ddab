import { mkdtempSync, realpathSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** All tests together hold some half of it at most: a store of 100,000 customers has a quarter. */
const ROOM_BYTES = 2 ** 30

/** Linux keeps this folder in memory. Tests wait for a disk longer than for a processor: every commit is synced. */
const IN_MEMORY = '/dev/shm'

const PLACE = hasRoom(IN_MEMORY) ? IN_MEMORY : tmpdir()

function hasRoom(folder: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize > ROOM_BYTES
  } catch {
    return false
  }
}

/** Creates a folder that the caller removes, and returns its path as a process in it would report it. */
export function createFolder(): string {
  return realpathSync(mkdtempSync(join(PLACE, 'latchkey-test-')))
}
