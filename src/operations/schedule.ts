import cron from 'node-cron'
import type { Logger } from 'pino'

const EVERY_MINUTE = '* * * * *'

export interface Schedule {
  /** Resolves once no job runs, and none will start. */
  stop(): Promise<void>
}

export interface ScheduleDeps {
  /** Writes down what the clock alone has changed; answers how much. */
  readonly refreshDue: () => Promise<number>
  /** Tells the log of endpoints that have fallen silent. */
  readonly warnOfGaps: () => Promise<void>
  readonly log: Logger
}

/** Runs what time makes due: once at the start, to catch up, then every minute, never one job twice at once. */
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
        // The next minute tries again; nothing but a warning comes late.
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

/**
 * Runs a job at once, and then every minute.
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
