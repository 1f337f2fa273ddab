import type { Kysely } from 'kysely'
import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import { createWarnOfGaps, readGaps } from '../operations/delivery-gaps.js'
import { addStoreMetrics } from '../operations/metrics.js'
import { type Schedule, startSchedule } from '../operations/schedule.js'
import { countWaiting } from '../store/event-questions.js'
import { firstKeptBodyAt } from '../store/expire-bodies.js'
import type { Database } from '../store/schema.js'

export interface WatchStoreDeps {
  /** Reads. */
  readonly db: Kysely<Database>
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
  return startSchedule({
    refreshDue: async () => {
      const count = await refreshDue()
      if (count > 0) onChanged()
      return count
    },
    warnOfGaps: createWarnOfGaps({ readGaps: gapsNow, endpointNames, log }),
    log,
  })
}
