import { setImmediate as turn } from 'node:timers/promises'
import type { Logger } from 'pino'
import { everyMinute, type Schedule } from '../operations/schedule.js'

export interface PrivacyScheduleDeps {
  readonly finishErasures: () => Promise<void>
  /** Erases some of those whom the provider deleted, and answers how many; null: nobody is erased for that. */
  readonly eraseDeleted: (() => Promise<number>) | null
  /** Removes some bodies received before an instant; 0: there are none. */
  readonly dropBodies: (before: number) => Promise<number>
  /** How old bodies get, in milliseconds; null: they are kept for ever. */
  readonly bodiesAfterMs: number | null
  /** Epoch milliseconds. */
  readonly clock: () => number
  readonly log: Logger
}

/** Finishes erasures that were imported or interrupted, follows deletions, and removes old bodies: every minute. */
export function startPrivacySchedule(deps: PrivacyScheduleDeps): Schedule {
  const { finishErasures, eraseDeleted, dropBodies, bodiesAfterMs, clock, log } = deps
  let isStopping = false
  const jobs = [
    everyMinute('erase', async () => {
      try {
        await finishErasures()
        while (!isStopping && eraseDeleted !== null && (await eraseDeleted()) > 0) await turn()
      } catch (error) {
        // The next minute tries again.
        log.error({ err: error }, 'an erasure could not be finished')
      }
    }),
    everyMinute('drop-bodies', async () => {
      if (bodiesAfterMs === null) return
      try {
        // Little at a time, and whatever else waits has its turn between.
        while (!isStopping && (await dropBodies(clock() - bodiesAfterMs)) > 0) await turn()
      } catch (error) {
        log.error({ err: error }, 'old bodies could not be removed')
      }
    }),
  ]
  return {
    async stop() {
      isStopping = true
      await Promise.all(jobs.map((job) => job.stop()))
    },
  }
}
