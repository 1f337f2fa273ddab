/* What a daemon does by the clock. */

import { setImmediate as turn } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import type { Config } from '../config/schema.js'
import { createWarnOfGaps, readGaps } from '../operations/delivery-gaps.js'
import { addStoreMetrics } from '../operations/metrics.js'
import { every, MINUTE_MS, type Schedule } from '../operations/schedule.js'
import { startBackup, startScheduledBackups } from '../operations/scheduled-backups.js'
import { type EraseDeps, eraseDeleted } from '../people/erase.js'
import { countWaiting } from '../store/event-questions.js'
import { firstKeptBodyAt } from '../store/expire-bodies.js'
import { MESSAGES_KEPT_MS } from '../store/message-log.js'
import type { Db } from '../store/schema.js'
import type { StartedParts } from './started-parts.js'
import type { Writer } from './writer.js'

export interface SchedulesDeps {
  readonly config: Config
  readonly store: {
    readonly reader: Db
    readonly writer: Pick<Writer, 'refreshDue' | 'dropBodies' | 'writeSync'>
    readonly bytes: () => Promise<number>
    /** Null: this daemon is the only one that uses it. */
    readonly shared: object | null
  }
  readonly erasing: EraseDeps
  readonly saveKeyUses: () => Promise<void>
  /** Called when time alone has changed access. */
  readonly onChanged: () => void
  /** Called each time, since a reload may change them. */
  readonly endpointNames: () => readonly string[]
  readonly registry: Registry
  /** Epoch milliseconds. */
  readonly clock: () => number
  readonly log: Logger
  readonly started: StartedParts
}

/** Starts backups, what time alone changes, the warnings about it, and what has to be removed. */
export function startSchedules(deps: SchedulesDeps): void {
  const { config, store, registry, clock, log, started } = deps
  if (config.backup !== null && store.shared === null) {
    const backups = startScheduledBackups({
      ...config.backup,
      startBackup: (target) => startBackup(config.database.file, target),
      registry,
      clock,
      log,
    })
    started.add('backups', backups.stop)
  }
  started.add('schedule', watchStore(deps).stop)
  started.add('privacySchedule', startPrivacySchedule(deps).stop)
}

/** Changes in the store over time, and the metrics and warnings about them. */
function watchStore(deps: SchedulesDeps): Schedule {
  const { store, saveKeyUses, onChanged, endpointNames, registry, clock, log } = deps
  const db = store.reader
  const gapsNow = () => readGaps(db, clock())
  addStoreMetrics({
    registry,
    endpointNames,
    readGaps: gapsNow,
    async countWaiting() {
      const counted = await countWaiting(db)
      return counted.map((one) => ({ ...one, oldestAge: Math.max(0, clock() - one.oldestAt) }))
    },
    readBytes: store.bytes,
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
        const count = await store.writer.refreshDue()
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

/** Finishes erasures that were imported or interrupted, follows deletions, and removes old bodies and messages. */
function startPrivacySchedule({ config, store, erasing, clock, log }: SchedulesDeps): Schedule {
  const { writer } = store
  const bodiesAfterMs = config.retention?.bodiesAfterMs ?? null
  const followsDeletions = config.erasure.onCustomerDeleted
  return every(
    MINUTE_MS,
    log,
    {
      async run(stopping) {
        await erasing.finish()
        while (followsDeletions && !stopping.aborted && (await eraseDeleted(erasing)) > 0) await turn()
      },
      failed: 'could not finish an erasure',
    },
    {
      async run(stopping) {
        if (bodiesAfterMs === null) return
        // In small steps, so that other work runs in between.
        while (!stopping.aborted && (await writer.dropBodies(clock() - bodiesAfterMs)) > 0) await turn()
      },
      failed: 'could not remove old bodies',
    },
    {
      async run(stopping) {
        const dropSome = () => writer.writeSync('expireMessages', clock() - MESSAGES_KEPT_MS)
        while (!stopping.aborted && (await dropSome()) > 0) await turn()
      },
      failed: 'could not remove old messages of the outbound webhooks',
    },
  )
}
