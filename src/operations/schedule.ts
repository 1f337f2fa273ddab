import type { Logger } from 'pino'

const MINUTE_MS = 60_000

export interface Schedule {
  /** Resolves once no job runs, and none will start. */
  stop(): Promise<void>
}

export interface Job {
  /** @param stopping aborted where the job should end soon */
  readonly run: (stopping: AbortSignal) => Promise<void>
  /** What the log says of a failure. */
  readonly failed: string
}

/**
 * Runs each job at once, and then every minute; never twice at the same time. The next minute tries again what failed.
 */
export function everyMinute(log: Logger, ...jobs: readonly Job[]): Schedule {
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
    const timer = setInterval(() => void runOnce(), MINUTE_MS)
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
  return everyMinute(log, {
    async run() {
      const newest = await sweptAt()
      const now = clock()
      // From the future: the clock was set back, and its age is not known.
      if (newest === null || newest > now || now - newest >= everyMs()) await sweep()
    },
    failed: 'could not compare with the members on the platforms',
  })
}
