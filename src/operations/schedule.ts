import type { Logger } from 'pino'
import type { Db } from '../store/schema.js'
import { loadSyncSettings } from '../store/sync-state.js'

export const MINUTE_MS = 60_000

export interface Schedule {
  /** Resolves once no job runs, and none will start. */
  stop(): Promise<void>
}

export interface Job {
  /** @param stopping aborted when the job should end soon */
  readonly run: (stopping: AbortSignal) => Promise<void>
  /** The log message for a failure. */
  readonly failed: string
}

/**
 * Runs each job at once, and then after each such time; never twice at the same time. A failed job is retried the next
 * time.
 */
export function every(ms: number, log: Logger, ...jobs: readonly Job[]): Schedule {
  const stopping = new AbortController()
  const started = jobs.map(({ run, failed }) => {
    let running: Promise<void> | null = null
    const runOnce = (): Promise<void> => {
      running ??= run(stopping.signal)
        .catch((error: unknown) => log.error({ err: error }, failed))
        .finally(() => {
          running = null
        })
      return running
    }
    void runOnce()
    const timer = setInterval(() => void runOnce(), ms)
    return async () => {
      clearInterval(timer)
      await running
    }
  })
  return {
    async stop() {
      stopping.abort()
      await Promise.all(started.map((stop) => stop()))
    },
  }
}

/**
 * Compares with the real members on the platforms when the newest sweep is old enough. The store knows when that was, so
 * a restart changes nothing.
 * @param everyMs called each time, since a reload may change it
 */
export function startSweeps(
  { db, clock, log }: { readonly db: Db; readonly clock: () => number; readonly log: Logger },
  sweep: () => Promise<void>,
  everyMs: () => number,
): Schedule {
  return every(MINUTE_MS, log, {
    async run() {
      const { sweptAt: newest } = await loadSyncSettings(db)
      const now = clock()
      // From the future: the clock was set back, and its age is unknown.
      if (newest === null || newest > now || now - newest >= everyMs()) await sweep()
    },
    failed: 'could not compare with the members on the platforms',
  })
}
