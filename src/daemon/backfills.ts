/* Backfills of a daemon: the access to the payments service, and the times at which they are due. */

import {
  type Backfills,
  type BackfillsDeps,
  type BackfillWrites,
  createBackfills,
  lastRanAt,
} from '../backfill/backfills.js'
import { createHydrate } from '../backfill/hydrate.js'
import { lastComplete, total } from '../backfill/run.js'
import { createSchedule } from '../operations/cron.js'
import type { LastBackfill } from '../operations/metrics.js'
import { every, MINUTE_MS } from '../operations/schedule.js'
import { createPaymentsApi, type PaymentsApi } from '../payments-api/client.js'
import { USUAL_AHEAD_MS } from '../provider/envelope.js'
import type { Environment } from '../provider/event.js'
import type { RecordKey } from '../store/awaited-records.js'
import { type Db, ENVIRONMENTS } from '../store/schema.js'
import type { WriteSync } from '../sync/writes.js'
import type { Opened } from './open.js'

/** The wait after a failure: the service may be away, or limit how often it is called. */
const RETRY_AFTER_MS = 15 * 60_000

type Ingesting = Opened & Pick<BackfillsDeps, 'ingest'>

/** Access to the payments service, one for each environment that is configured: all calls share its limits. */
export function createApis({ config, clock, random, sleep, log }: Opened): readonly PaymentsApi[] {
  return ENVIRONMENTS.flatMap((environment) => {
    const access = config.provider[environment]
    if (access === null) return []
    return createPaymentsApi({
      ...{ ...access, environment, clock, random },
      ...(sleep && { sleep }),
      onRetry: ({ message }, waitMs) =>
        log.warn(
          { environment, why: message, waitMs },
          'a call to the payments service failed: trying again',
        ),
    })
  })
}

export function startBackfills(parts: Ingesting, apis: readonly PaymentsApi[]): Backfills {
  const { store, db, ingest, clock, log, started } = parts
  const { shared } = store
  const backfills = createBackfills({
    apiFor: (environment) => apis.find((api) => api.environment === environment) ?? null,
    ...{ db, ingest, clock, log, aheadAtMostMs: aheadIn(parts), readApart: store.readApart },
    writes: writesOf(store.writer.writeSync),
    alone: (environment, work) =>
      shared === null
        ? work(writesOf(store.writer.writeSync))
        : shared.backfillAlone(environment, (writeSync) => work(writesOf(writeSync))),
    isTaken: async (environment) => (await shared?.isBackfilling(environment)) ?? false,
  })
  started.add('backfills', backfills.close)
  return backfills
}

/** Looks every minute for events whose payment or subscription the service may know more of. */
export function startHydrating(parts: Ingesting, apis: readonly PaymentsApi[]): void {
  const { store, db, ingest, clock, log, started } = parts
  const { writeSync } = store.writer
  if (apis.length === 0) return
  const noteAsked = (record: RecordKey) => writeSync('noteAskedRecord', record)
  const hydrate = createHydrate({ db, apis, ingest, aheadAtMostMs: aheadIn(parts), noteAsked, clock, log })
  const isLeader = store.shared?.isLeader ?? (() => true)
  const hydrating = every(MINUTE_MS, log, {
    run: async (stopping) => (isLeader() ? hydrate(stopping) : undefined),
    failed: 'could not ask the payments service what held events wait for',
  })
  started.add('hydrating', hydrating.stop)
}

/** The most that any endpoint of an environment takes, as configured now. */
const aheadIn =
  ({ current }: Ingesting) =>
  (environment: Environment): number => {
    const own = Object.values(current.endpointRules()).filter((one) => one.environment === environment)
    return Math.max(USUAL_AHEAD_MS, ...own.map(({ aheadAtMostMs }) => aheadAtMostMs))
  }

function writesOf(writeSync: WriteSync): BackfillWrites {
  return {
    save: (step) => writeSync('saveBackfill', step),
    stop: (id) => writeSync('stopBackfill', id),
    forget: (id) => writeSync('forgetBackfill', id),
  }
}

/** One for each environment that is configured. */
export function startBackfillSchedules(
  { config, store, db, clock, log, started }: Opened,
  backfills: Backfills,
): void {
  const { schedule, timezone } = config.backfill
  if (schedule === null) return
  const isLeader = store.shared?.isLeader
  const scheduleOf = (environment: Environment) =>
    createSchedule({
      ...{ expression: schedule, timezone, clock, log },
      ...(isLeader && { isLeader }),
      run: (stopping) => backfills.complete(environment, stopping),
      lastRanAt: () => lastRanAt(db, environment),
      failed: `the scheduled backfill of ${environment} failed; trying again in 15 minutes`,
      retryAfterMs: RETRY_AFTER_MS,
    })
  const schedules = ENVIRONMENTS.filter((one) => config.provider[one] !== null).map(scheduleOf)
  started.add('backfillSchedules', async () => {
    await Promise.all(schedules.map(({ stop }) => stop()))
  })
}

/** What the metrics say of the last complete one of each environment. */
export async function readLastBackfills(db: Db): Promise<readonly LastBackfill[]> {
  const runs = await Promise.all(ENVIRONMENTS.map((environment) => lastComplete(db, environment)))
  return runs.flatMap((run) => {
    if (run?.outcome.state !== 'done') return []
    const { endedAt, result } = run.outcome
    const counts = { stored: total(result.stored), differences: total(run.found.differences) }
    return [{ environment: run.plan.environment, endedAt, ...counts }]
  })
}
