import { setTimeout as wait } from 'node:timers/promises'
import type { Logger } from 'pino'

/** Changes come in bursts: one update takes them all, and ingest has the writer to itself meanwhile. */
const WAKE_MS = 100
/** A regular look costs little, and finds changes that no call announced. */
const IDLE_MS = 60_000
const AFTER_FAILURE_MS = 5_000
/** The minimum wait, however close the next work is. */
const LEAST_MS = 20

export interface LoopDeps {
  readonly look: () => Promise<void>
  readonly work: () => Promise<void>
  /** When further work is due, in epoch milliseconds. */
  readonly nextAt: () => Promise<readonly number[]>
  /** Epoch milliseconds. */
  readonly clock: () => number
  readonly log: Logger
}

/** Runs the work in the background: on request, when something is due, and at regular intervals. */
export function createLoop({ look, work, nextAt, clock, log }: LoopDeps) {
  let waking: NodeJS.Timeout | null = null
  let timer: NodeJS.Timeout | null = null
  let isStopping = false
  const underWay = new Set<Promise<unknown>>()

  const lookAndWork = oneAtATime(async () => {
    await look()
    await work()
  })
  const workOnly = oneAtATime(work)

  function begin(doing: () => Promise<void>): void {
    if (isStopping) return
    const begun = doing()
      .then(nextAt)
      .then((times) => schedule(Math.min(...times, Number.POSITIVE_INFINITY) - clock()))
      .catch((error: unknown) => {
        if (isStopping) return
        log.error({ err: error }, 'sync failed; retrying in a few seconds')
        schedule(AFTER_FAILURE_MS)
      })
      .finally(() => underWay.delete(begun))
    underWay.add(begun)
  }

  function schedule(ms: number): void {
    if (timer !== null) clearTimeout(timer)
    if (!isStopping) timer = setTimeout(() => begin(lookAndWork), Math.min(Math.max(ms, LEAST_MS), IDLE_MS))
  }

  return {
    /** Updates and works soon; frequent calls are combined. Cheap, and never throws. */
    wake(): void {
      if (isStopping) return
      waking ??= setTimeout(() => {
        waking = null
        begin(lookAndWork)
      }, WAKE_MS)
    },
    /** Works now, without waiting for an update in progress. */
    workNow: () => begin(workOnly),
    /** Has a stop wait for this as for its own work. */
    include<Answer>(doing: Promise<Answer>): Promise<Answer> {
      underWay.add(doing)
      doing.catch(() => {}).finally(() => underWay.delete(doing))
      return doing
    },
    /** Starts nothing more, and waits at most this many milliseconds for work in progress. */
    async stop(withinMs: number): Promise<void> {
      isStopping = true
      for (const pending of [waking, timer]) if (pending !== null) clearTimeout(pending)
      const giveUp = new AbortController()
      const late = wait(withinMs, undefined, { signal: giveUp.signal }).catch(() => {})
      await Promise.race([Promise.allSettled(underWay), late])
      giveUp.abort()
    },
  }
}

/**
 * Runs work one at a time. A call made during a run waits for that run, then starts its own; calls that wait share
 * one run.
 */
export function oneAtATime<Answer>(work: () => Promise<Answer>): () => Promise<Answer> {
  let next: Promise<Answer> | null = null
  let last: Promise<unknown> = Promise.resolve()

  async function runAfter(before: Promise<unknown>): Promise<Answer> {
    // The callers of that run handle its error.
    await before.catch(() => {})
    next = null
    return work()
  }

  return () => {
    if (next === null) {
      next = runAfter(last)
      last = next
    }
    return next
  }
}

/**
 * Writes items in batches: items that arrive during a write go into the next one together.
 * @param write returns an answer for each item, in order
 */
export function inBatches<Item, Answer>(
  write: (items: readonly Item[]) => Promise<readonly Answer[]>,
): (item: Item) => Promise<Answer | undefined> {
  let waiting: Item[] = []
  const writeWaiting = oneAtATime(() => {
    const items = waiting
    waiting = []
    return write(items)
  })
  return async (item) => {
    const place = waiting.push(item) - 1
    return (await writeWaiting())[place]
  }
}
