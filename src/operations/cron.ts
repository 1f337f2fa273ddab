/* What runs at times that the merchant writes as cron does: on node-cron, which is loaded where such a time is set. */

import { setImmediate as turn } from 'node:timers/promises'
import type { ScheduledTask } from 'node-cron'
import type { Logger } from 'pino'
import { every, MINUTE_MS, type Schedule } from './schedule.js'

/** When something is due: five fields and a time zone, as the config checks them. */
export interface Times {
  readonly expression: string
  readonly timezone: string
}

export interface CronDeps extends Times {
  /** @param stopping aborted when the job should end soon */
  readonly run: (stopping: AbortSignal) => Promise<void>
  /** When the newest complete run began, in epoch milliseconds, as it is stored; null: there was none. */
  readonly lastRanAt: () => Promise<number | null>
  /** Of several instances on one store, only the one that leads runs it. */
  readonly isLeader?: () => boolean
  /** The log message for a failure. */
  readonly failed: string
  /** The wait after a failure. */
  readonly retryAfterMs: number
  /** Epoch milliseconds. */
  readonly clock: () => number
  readonly log: Logger
}

/**
 * Runs a job at its times, never twice at once. What was due while nobody ran it, since the daemon was stopped or the
 * machine slept, is done once. A failed run is tried again after a wait.
 */
export function createSchedule(deps: CronDeps): Schedule {
  const { run, lastRanAt, isLeader = () => true, failed, retryAfterMs, clock, log } = deps
  const stopping = new AbortController()
  const startedAt = clock()
  let task: ScheduledTask | null = null
  let running: Promise<void> | null = null
  /** A run may be due that no time to come will bring. */
  let mayBeOverdue = true
  let notBefore = startedAt

  /** A run that was never made counts as overdue only if its time came while this daemon ran. */
  const isDue = async () => isOverdue(deps, (await lastRanAt()) ?? startedAt, clock())

  async function runUnlessRunning(isStillDue: () => Promise<boolean>): Promise<void> {
    running ??= (async () => {
      try {
        if (!(await isStillDue()) || stopping.signal.aborted) return
        await run(stopping.signal)
      } catch (error) {
        mayBeOverdue = true
        notBefore = clock() + retryAfterMs
        if (!stopping.signal.aborted) log.error({ err: error }, failed)
      } finally {
        running = null
      }
    })()
    return running
  }

  /** One of its times has come. */
  async function onTime(): Promise<void> {
    // The leader may end before it runs it, and the run under way may have been due before.
    if (!isLeader() || running !== null) mayBeOverdue = true
    else await runUnlessRunning(async () => true)
  }

  const looking = every(MINUTE_MS, log, {
    async run() {
      if (!mayBeOverdue || !isLeader() || clock() < notBefore) return
      mayBeOverdue = false
      await runUnlessRunning(isDue)
    },
    failed,
  })
  async function start(): Promise<void> {
    task = await openTask(deps, onTime)
    if (stopping.signal.aborted) return task.destroy()
    // Its time passed while the machine slept or was too busy.
    task.on('execution:missed', onTime)
    await task.start()
    // It knows only times to come, and one may have come while the library was loaded.
    if (minuteOf(clock()) > minuteOf(startedAt)) mayBeOverdue = true
  }
  const starting = start()
  starting.catch((error: unknown) => log.error({ err: error }, failed))
  return {
    async stop() {
      stopping.abort()
      await Promise.allSettled([starting])
      await task?.destroy()
      await looking.stop()
      await running
    },
  }
}

const minuteOf = (at: number): number => Math.floor(at / MINUTE_MS)

/** A task that has not started. Its own log would go to standard output. */
async function openTask(
  { expression, timezone }: Times,
  run: () => Promise<void> = async () => {},
): Promise<ScheduledTask> {
  const { createTask } = await import('node-cron')
  const nothing = () => {}
  const logger = { info: nothing, warn: nothing, error: nothing, debug: nothing }
  return createTask(expression, run, { timezone, logger })
}

/** Offsets of time zones are multiples of a quarter of an hour. */
const QUARTER = 15
/** Further back is not looked: nearly every schedule is due once a year. */
const FURTHEST_MS = 366 * 86_400_000
/** Takes a millisecond or so; a year of a daily time takes half a second together. */
const AT_A_TIME = 100

/** Whether one of the times lies after `after`, and not after `now`: epoch milliseconds. */
export async function isOverdue(times: Times, after: number, now: number): Promise<boolean> {
  const { parse } = await import('node-cron')
  const task = await openTask(times)
  const minutes = new Set(parse(times.expression).minute.map((minute) => minute % QUARTER))
  let looked = 0
  const from = minuteOf(Math.max(after, now - FURTHEST_MS)) + 1
  try {
    for (let minute = from; minute * MINUTE_MS <= now; minute += 1) {
      if (!minutes.has(minute % QUARTER)) continue
      if (task.match(new Date(minute * MINUTE_MS))) return true
      looked += 1
      if (looked % AT_A_TIME === 0) await turn()
    }
    return false
  } finally {
    // The library keeps a list of all tasks.
    await task.destroy()
  }
}
