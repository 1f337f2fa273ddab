import { LatchkeyError } from '../errors.js'
import { diskFailed, isDiskFailure } from '../store/database-file.js'
import { dryRunOf, removeDryRun } from '../store/left-behind.js'
import type { BackupUnderWay } from '../store/start-backup.js'
import { callsThatFollow, type FollowingCall, type FollowingCalls } from './following-calls.js'
import type { Replay, ReplayOrder, ReplayReport } from './replay.js'
import { neverStopping, type WorkOptions } from './work-options.js'

/** How soon a copy under way is given up once it is not wanted. */
const LOOK_EVERY_MS = 200

export interface RehearseDeps {
  /** The database itself, and no link to it: its lock is this process's, which alone removes what is left there. */
  readonly file: string
  readonly startCopy: (file: string, target: string) => BackupUnderWay
  readonly openCopy: (file: string) => Rehearsal
}

/** A copy of the database, open. */
export interface Rehearsal {
  readonly replay: Replay
  /** Every call to a platform that is to be made as the copy stands. */
  calls(): Promise<readonly FollowingCall[]>
  close(): Promise<void>
}

export interface RehearsalReport extends ReplayReport {
  /** What roles and groups would have to follow. */
  readonly calls: FollowingCalls
}

/** @throws {LatchkeyError} `replay_interrupted`; `backup_failed` where the copy can't be made, or grow */
export type Rehearse = (order: ReplayOrder, options?: WorkOptions) => Promise<RehearsalReport>

/** Calls that a report names; it counts all. */
const SAMPLE_SIZE = 20

/**
 * A replay on a copy of the database, beside it, which is thrown away: it tells to the letter what the same replay
 * would do, and neither changes nor delays anything. It needs as much free disk as the database takes. One at a time.
 */
export function createRehearse({ file, startCopy, openCopy }: RehearseDeps): Rehearse {
  const copy = dryRunOf(file)
  return async (order, { onProgress, isStopping = neverStopping } = {}) => {
    removeDryRun(file)
    try {
      await copied(startCopy(file, copy), isStopping)
      const { replay, calls, close } = openCopy(copy)
      try {
        const before = await calls()
        const report = await replay(order, { ...(onProgress && { onProgress }), isStopping })
        return { ...report, calls: callsThatFollow(before, await calls(), SAMPLE_SIZE) }
      } finally {
        await close()
      }
    } catch (error) {
      throw isDiskFailure(error) ? diskFailed(`${copy} can't be written`, error) : error
    } finally {
      removeDryRun(file)
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
