import { rmSync } from 'node:fs'
import { LatchkeyError } from '../errors.js'
import type { BackupUnderWay } from '../store/start-backup.js'
import type { Replay } from './replay.js'
import { neverStopping, type WorkOptions } from './work-options.js'
import type { OpenWriter } from './writer.js'

/** How soon a copy under way is given up once it is not wanted. */
const LOOK_EVERY_MS = 200

/** What SQLite keeps beside a database file. */
const SIDE_FILES = ['', '-wal', '-shm', '-journal']

export interface RehearseDeps {
  /** The database. */
  readonly file: string
  readonly startCopy: (file: string, target: string) => BackupUnderWay
  readonly openWriter: (file: string) => OpenWriter
}

/**
 * A replay on a copy of the database, beside it, which is thrown away: it tells to the letter what the same replay
 * would do, and neither changes nor delays anything. It needs as much free disk as the database takes. One at a time.
 */
export function createRehearse({ file, startCopy, openWriter }: RehearseDeps): Replay {
  const copy = `${file}.dry-run`
  return async (order, { onProgress, isStopping = neverStopping } = {}) => {
    removeCopy(copy)
    try {
      await copied(startCopy(file, copy), isStopping)
      const writer = openWriter(copy)
      try {
        return await writer.replay(order, { ...(onProgress && { onProgress }), isStopping })
      } finally {
        await writer.close()
      }
    } finally {
      removeCopy(copy)
    }
  }
}

/** @throws {LatchkeyError} `replay_interrupted` */
async function copied(
  copying: BackupUnderWay,
  isStopping: NonNullable<WorkOptions['isStopping']>,
): Promise<void> {
  let isStopped = false
  const watch = setInterval(async () => {
    isStopped = await isStopping()
    if (isStopped) copying.stop()
  }, LOOK_EVERY_MS)
  try {
    await copying.done
  } catch (error) {
    if (!isStopped) throw error
    throw new LatchkeyError('replay_interrupted', 'Stopped: nothing was changed.', { cause: error })
  } finally {
    clearInterval(watch)
  }
}

function removeCopy(copy: string): void {
  for (const suffix of SIDE_FILES) rmSync(`${copy}${suffix}`, { force: true })
}
