import { setTimeout as wait } from 'node:timers/promises'
import type { Logger } from 'pino'

/** Changes come in bursts: one look takes in all of them, and ingest has the writer to itself meanwhile. */
const WAKE_MS = 100
/** A look now and then costs little, and finds what nobody told of. */
const IDLE_MS = 60_000
const AFTER_FAILURE_MS = 5_000
/** However near the next thing to do is. */
const LEAST_MS = 20

export interface LoopDeps {
  /** Takes in what has changed. */
  readonly look: () => Promise<void>
  /** Works off what is due. */
  readonly work: () => Promise<void>
  /** When there is more to do, in epoch milliseconds; null: not by itself. */
  readonly nextAt: () => Promise<number | null>
  /** Epoch milliseconds. */
  readonly clock: () => number
  readonly log: Logger
}

/** Makes work happen in the background: when somebody asks for it, when something comes due, and now and then. */
export function createLoop({ look, work, nextAt, clock, log }: LoopDeps) {
  let waking: NodeJS.Timeout | null = null
  let timer: NodeJS.Timeout | null = null
  let isStopping = false
  const underWay = new Set<Promise<void>>()

  const lookAndWork = oneAtATime(async () => {
    await look()
    await work()
  })
  const workOnly = oneAtATime(work)

  function begin(doing: () => Promise<void>): void {
    if (isStopping) return
    const begun = doing()
      .then(nextAt)
      .then((at) => schedule(at === null ? IDLE_MS : at - clock()))
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
    /** Looks and works soon; asked often, not more often than it must. Cheap, and never throws. */
    wake(): void {
      if (isStopping) return
      waking ??= setTimeout(() => {
        waking = null
        begin(lookAndWork)
      }, WAKE_MS)
    },
    /** Works now, beside a look that may be under way. */
    workNow: () => begin(workOnly),
    /** Begins nothing any more, and waits so many milliseconds at most for what is under way. */
    async stop(withinMs: number): Promise<void> {
      isStopping = true
      for (const pending of [waking, timer]) if (pending !== null) clearTimeout(pending)
      const giveUp = new AbortController()
      const late = wait(withinMs, undefined, { signal: giveUp.signal }).catch(() => {})
      await Promise.race([Promise.all(underWay), late])
      giveUp.abort()
    },
  }
}

/**
 * Runs work one at a time. Asked for while it runs, it runs once more: every answer is that of a run which began
 * after the question.
 */
export function oneAtATime<Answer>(work: () => Promise<Answer>): () => Promise<Answer> {
  let next: Promise<Answer> | null = null
  let last: Promise<unknown> = Promise.resolve()

  async function runAfter(before: Promise<unknown>): Promise<Answer> {
    // Its own callers learn how that one ended.
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
 * Writes items in batches: what comes while a write is under way goes together into the next one.
 * @param write answers for each item, in their order
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
