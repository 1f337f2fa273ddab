import { setImmediate as turn } from 'node:timers/promises'
import type { Kysely } from 'kysely'
import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import { createWarnOfGaps, readGaps } from '../operations/delivery-gaps.js'
import { addStoreMetrics } from '../operations/metrics.js'
import { every, MINUTE_MS, type Schedule } from '../operations/schedule.js'
import { countWaiting } from '../store/event-questions.js'
import { firstKeptBodyAt } from '../store/expire-bodies.js'
import type { Database } from '../store/schema.js'

export interface WatchStoreDeps {
  /** For reads. */
  readonly db: Kysely<Database>
  /** The size of the database. */
  readonly readBytes: () => Promise<number>
  /** Stores the changes that time alone has caused, and returns their number. Queries are exact without it. */
  readonly refreshDue: () => Promise<number>
  readonly saveKeyUses: () => Promise<void>
  /** Called when time alone has changed access. */
  readonly onChanged: () => void
  /** Called each time, since a reload may change them. */
  readonly endpointNames: () => readonly string[]
  readonly registry: Registry
  /** Epoch milliseconds. */
  readonly clock: () => number
  readonly log: Logger
}

/** Changes in the store over time, and the metrics and warnings about them. */
export function watchStore(deps: WatchStoreDeps): Schedule {
  const { db, readBytes, refreshDue, saveKeyUses, onChanged, endpointNames, registry, clock, log } = deps
  const gapsNow = () => readGaps(db, clock())
  addStoreMetrics({
    registry,
    endpointNames,
    readGaps: gapsNow,
    async countWaiting() {
      const counted = await countWaiting(db)
      return counted.map((one) => ({ ...one, oldestAge: Math.max(0, clock() - one.oldestAt) }))
    },
    readBytes,
    async readFirstBodyAge() {
      const at = await firstKeptBodyAt(db)
      return at === null ? null : Math.max(0, clock() - at)
    },
  })
  return every(
    MINUTE_MS,
    log,
    {
      async run() {
        const count = await refreshDue()
        if (count === 0) return
        onChanged()
        log.info({ count }, 'access has expired')
      },
      failed: 'could not store expired access',
    },
    {
      run: createWarnOfGaps({ readGaps: gapsNow, endpointNames, log }),
      failed: 'could not check for silent endpoints',
    },
    { run: saveKeyUses, failed: 'could not store when API keys were used' },
  )
}

export interface PrivacyScheduleDeps {
  readonly finishErasures: () => Promise<void>
  /** Erases some customers whom the provider deleted, and returns their number; null: deletions are not followed. */
  readonly eraseDeleted: (() => Promise<number>) | null
  /** Removes some bodies received before an instant, and returns their number; 0: there are none. */
  readonly dropBodies: (before: number) => Promise<number>
  /** The maximum age of bodies, in milliseconds; null: they are kept for ever. */
  readonly bodiesAfterMs: number | null
  /** Removes some old messages of the outbound webhooks, and returns their number; 0: there are none. */
  readonly dropMessages: () => Promise<number>
  /** Epoch milliseconds. */
  readonly clock: () => number
  readonly log: Logger
}

/** Finishes erasures that were imported or interrupted, follows deletions, and removes old bodies and messages. */
export function startPrivacySchedule(deps: PrivacyScheduleDeps): Schedule {
  const { finishErasures, eraseDeleted, dropBodies, bodiesAfterMs, dropMessages, clock, log } = deps
  return every(
    MINUTE_MS,
    log,
    {
      async run(stopping) {
        await finishErasures()
        while (!stopping.aborted && eraseDeleted !== null && (await eraseDeleted()) > 0) await turn()
      },
      failed: 'could not finish an erasure',
    },
    {
      async run(stopping) {
        if (bodiesAfterMs === null) return
        // In small steps, so that other work runs in between.
        while (!stopping.aborted && (await dropBodies(clock() - bodiesAfterMs)) > 0) await turn()
      },
      failed: 'could not remove old bodies',
    },
    {
      async run(stopping) {
        while (!stopping.aborted && (await dropMessages()) > 0) await turn()
      },
      failed: 'could not remove old messages of the outbound webhooks',
    },
  )
}
