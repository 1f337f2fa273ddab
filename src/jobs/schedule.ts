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
  readonly log: Logger
}

/** Runs what time makes due: once at the start, to catch up, then every minute, never twice at once. */
export function startSchedule({ refreshDue, log }: ScheduleDeps): Schedule {
  let running: Promise<void> = Promise.resolve()

  function refresh(): Promise<void> {
    running = refreshDue().then(
      (count) => {
        if (count > 0) log.info({ count }, 'access ran out by the clock')
      },
      // The next minute tries again; queries are exact without it.
      (error: unknown) => log.error({ err: error }, 'could not write down what the clock changed'),
    )
    return running
  }

  void refresh()
  const task = cron.schedule(EVERY_MINUTE, refresh, { noOverlap: true, name: 'refresh-due' })
  return {
    async stop() {
      await task.destroy()
      await running
    },
  }
}
