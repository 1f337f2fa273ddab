import type { Logger } from 'pino'
import { everyMinute, type Schedule } from './schedule.js'

export interface SweepsDeps {
  /** Compares with the platforms' real members. */
  readonly sweep: () => Promise<void>
  /** When the newest one began, in epoch milliseconds; null: there was none. */
  readonly sweptAt: () => Promise<number | null>
  /** The age, in milliseconds, at which it is followed by another; asked each time, since a reload may change it. */
  readonly everyMs: () => number
  /** Epoch milliseconds. */
  readonly clock: () => number
  readonly log: Logger
}

/** Sweeps whenever the newest sweep is old enough: what is due the store tells, so that a restart changes nothing. */
export function startSweeps({ sweep, sweptAt, everyMs, clock, log }: SweepsDeps): Schedule {
  return everyMinute('sweep', async () => {
    try {
      const newest = await sweptAt()
      const now = clock()
      // From the future: the clock was set back, and how old it is nobody knows.
      if (newest === null || newest > now || now - newest >= everyMs()) await sweep()
    } catch (error) {
      // The next minute tries again; what changes by itself is driven without it.
      log.error({ err: error }, 'could not compare with the members on the platforms')
    }
  })
}
