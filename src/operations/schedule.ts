import type { Logger } from 'pino'

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

export interface SweepsDeps {
  /** Compares with the real members on the platforms. */
  readonly sweep: () => Promise<void>
  /** When the newest sweep began, in epoch milliseconds; null: there was none. */
  readonly sweptAt: () => Promise<number | null>
  /**
   * The age of a sweep, in milliseconds, after which the next one is due; called each time, since a reload may change
   * it.
   */
  readonly everyMs: () => number
  /** Epoch milliseconds. */
  readonly clock: () => number
  readonly log: Logger
}

/** Sweeps when the newest sweep is old enough. The store knows when that was, so a restart changes nothing. */
export function startSweeps({ sweep, sweptAt, everyMs, clock, log }: SweepsDeps): Schedule {
  return every(MINUTE_MS, log, {
    async run() {
      const newest = await sweptAt()
      const now = clock()
      // From the future: the clock was set back, and its age is unknown.
      if (newest === null || newest > now || now - newest >= everyMs()) await sweep()
    },
    failed: 'could not compare with the members on the platforms',
  })
}
