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

/** Ends what erasures have begun, follows deletions, and removes old bodies: at the start, then every minute. */
export function startPrivacySchedule(deps: PrivacyScheduleDeps): Schedule {
  const { finishErasures, eraseDeleted, dropBodies, bodiesAfterMs, clock, log } = deps
  let isStopping = false
  const jobs = [
    everyMinute('finish-erasures', async () => {
      try {
        while (!isStopping && eraseDeleted !== null && (await eraseDeleted()) > 0) await turn()
      } catch (error) {
        log.error({ err: error }, 'a customer whom the provider deleted could not be erased')
      }
      await finishErasures()
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
