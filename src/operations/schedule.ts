import cron from 'node-cron'
import type { Logger } from 'pino'

const EVERY_MINUTE = '* * * * *'

export interface Schedule {
  /** Resolves once no job runs, and none will start. */
  stop(): Promise<void>
}

/**
 * Runs a job at once, and then every minute; never twice at the same time.
 * @param run never rejects
 */
export function everyMinute(name: string, run: () => Promise<void>): Schedule {
  let running: Promise<void> | null = null

  function runOnce(): Promise<void> {
    running ??= run().finally(() => {
      running = null
    })
    return running
  }

  void runOnce()
  const task = cron.schedule(EVERY_MINUTE, runOnce, { noOverlap: true, name })
  return {
    async stop() {
      await task.destroy()
      await running
    },
  }
}

export interface ScheduleDeps {
  /** Writes what the clock alone has changed; answers how much. */
  readonly refreshDue: () => Promise<number>
  /** Logs endpoints that have fallen silent. */
  readonly warnOfGaps: () => Promise<void>
  readonly log: Logger
}

/** Runs what time makes due: once at the start, to catch up, then every minute. */
export function startSchedule({ refreshDue, warnOfGaps, log }: ScheduleDeps): Schedule {
  const jobs = [
    everyMinute('refresh-due', async () => {
      try {
        const count = await refreshDue()
        if (count > 0) log.info({ count }, 'access ran out by the clock')
      } catch (error) {
        // The next minute tries again; queries are exact without it.
        log.error({ err: error }, 'could not write down what the clock changed')
      }
    }),
    everyMinute('warn-of-gaps', async () => {
      try {
        await warnOfGaps()
      } catch (error) {
        // The next minute tries again; only a warning comes late.
        log.error({ err: error }, 'could not look for silent endpoints')
      }
    }),
  ]
  return {
    async stop() {
      await Promise.all(jobs.map((job) => job.stop()))
    },
  }
}

export interface SweepsDeps {
  /** Compares with the platforms' real members. */
  readonly sweep: () => Promise<void>
  /** When the newest sweep began, in epoch milliseconds; null: there was none. */
  readonly sweptAt: () => Promise<number | null>
  /** The age, in milliseconds, at which it is followed by another; asked each time, since a reload may change it. */
  readonly everyMs: () => number
  /** Epoch milliseconds. */
  readonly clock: () => number
  readonly log: Logger
}

/** Sweeps whenever the newest sweep is old enough: the store tells what is due, so that a restart changes nothing. */
export function startSweeps({ sweep, sweptAt, everyMs, clock, log }: SweepsDeps): Schedule {
  return everyMinute('sweep', async () => {
    try {
      const newest = await sweptAt()
      const now = clock()
      // From the future: the clock was set back, and its age is not known.
      if (newest === null || newest > now || now - newest >= everyMs()) await sweep()
    } catch (error) {
      // The next minute tries again; what changes by itself is driven without it.
      log.error({ err: error }, 'could not compare with the members on the platforms')
    }
  })
}
