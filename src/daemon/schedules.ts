/* What a daemon does by the clock. */

import { setImmediate as turn } from 'node:timers/promises'
import { createWarnOfGaps, readGaps } from '../operations/delivery-gaps.js'
import { addStoreMetrics } from '../operations/metrics.js'
import { every, MINUTE_MS, type Schedule } from '../operations/schedule.js'
import { startBackup, startScheduledBackups } from '../operations/scheduled-backups.js'
import { eraseDeleted } from '../people/erase.js'
import { MESSAGES_KEPT_MS } from '../store/message-log.js'
import { readLastBackfills, startBackfillSchedules, startHydrating } from './backfills.js'
import type { Parts } from './parts.js'

/** Starts backups, what time alone changes, the warnings about it, and what has to be removed. */
export function startSchedules(parts: Parts): void {
  const { config, store, metrics, clock, log, started } = parts
  if (config.backup !== null && store.shared === null) {
    const backups = startScheduledBackups({
      ...config.backup,
      startBackup: (target) => startBackup(config.database.file, target),
      registry: metrics.registry,
      clock,
      log,
    })
    started.add('backups', backups.stop)
  }
  startBackfillSchedules(parts, parts.backfilling)
  startHydrating(parts, parts.apis)
  started.add('schedule', watchStore(parts).stop)
  started.add('privacySchedule', startPrivacySchedule(parts).stop)
}

/** Changes in the store over time, and the metrics and warnings about them. */
function watchStore({ store, db, keyUses, wake, current, metrics, clock, log }: Parts): Schedule {
  const { endpointNames } = current
  addStoreMetrics({
    ...{ registry: metrics.registry, endpointNames, db, readBytes: store.bytes, clock },
    readBackfills: () => readLastBackfills(db),
  })
  return every(
    MINUTE_MS,
    log,
    {
      async run() {
        const count = await store.writer.refreshDue()
        if (count === 0) return
        wake()
        log.info({ count }, 'access has expired')
      },
      failed: 'could not store expired access',
    },
    {
      run: createWarnOfGaps(() => readGaps(db, clock()), endpointNames, log),
      failed: 'could not check for silent endpoints',
    },
    { run: keyUses.save, failed: 'could not store when API keys were used' },
  )
}

/** Finishes erasures that were imported or interrupted, follows deletions, and removes old bodies and messages. */
function startPrivacySchedule({ config, store, erasing, clock, log }: Parts): Schedule {
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
