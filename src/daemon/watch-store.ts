import { setImmediate as turn } from 'node:timers/promises'
import type { Kysely } from 'kysely'
import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import { createWarnOfGaps, readGaps } from '../operations/delivery-gaps.js'
import { addStoreMetrics } from '../operations/metrics.js'
import { everyMinute, type Schedule } from '../operations/schedule.js'
import { countWaiting } from '../store/event-questions.js'
import { firstKeptBodyAt } from '../store/expire-bodies.js'
import type { Database } from '../store/schema.js'

export interface WatchStoreDeps {
  /** Reads. */
  readonly db: Kysely<Database>
  /** Writes what the clock alone has changed; answers how much. Queries are exact without it. */
  readonly refreshDue: () => Promise<number>
  /** Told when the clock alone has changed access. */
  readonly onChanged: () => void
  /** Asked each time, since a reload may change them. */
  readonly endpointNames: () => readonly string[]
  readonly registry: Registry
  /** Epoch milliseconds. */
  readonly clock: () => number
  readonly log: Logger
}

/** What changes in the store by the clock alone, and what its metrics and warnings tell of it. */
export function watchStore(deps: WatchStoreDeps): Schedule {
  const { db, refreshDue, onChanged, endpointNames, registry, clock, log } = deps
  const gapsNow = () => readGaps(db, clock())
  addStoreMetrics({
    registry,
    endpointNames,
    readGaps: gapsNow,
    countWaiting: () => countWaiting(db),
    async readFirstBodyAge() {
      const at = await firstKeptBodyAt(db)
      return at === null ? null : Math.max(0, clock() - at)
    },
  })
  return everyMinute(
    log,
    {
      async run() {
        const count = await refreshDue()
        if (count === 0) return
        onChanged()
        log.info({ count }, 'access ran out by the clock')
      },
      failed: 'could not write down what the clock changed',
    },
    {
      run: createWarnOfGaps({ readGaps: gapsNow, endpointNames, log }),
      failed: 'could not look for silent endpoints',
    },
  )
}

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

/** Finishes erasures that were imported or interrupted, follows deletions, and removes old bodies. */
export function startPrivacySchedule(deps: PrivacyScheduleDeps): Schedule {
  const { finishErasures, eraseDeleted, dropBodies, bodiesAfterMs, clock, log } = deps
  return everyMinute(
    log,
    {
      async run(stopping) {
        await finishErasures()
        while (!stopping.aborted && eraseDeleted !== null && (await eraseDeleted()) > 0) await turn()
      },
      failed: 'an erasure could not be finished',
    },
    {
      async run(stopping) {
        if (bodiesAfterMs === null) return
        // Little at a time, and whatever else waits has its turn between.
        while (!stopping.aborted && (await dropBodies(clock() - bodiesAfterMs)) > 0) await turn()
      },
      failed: 'old bodies could not be removed',
    },
  )
}
