import { setTimeout as wait } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { FinishErasures } from '../ingest/finish-erasures.js'

/** Whoever reads from the write-ahead log, such as a backup, is done sooner or later. */
const ASK_AGAIN_MS = 250
const ATTEMPTS = 20

export interface Finishing {
  /** Resolves once every erasure that is stored by now is finished, or as much as can be for the time being. */
  finish(): Promise<void>
  /** Lets nothing begin any more, and what is under way end soon. */
  stop(): void
}

export interface FinishingDeps {
  readonly finish: FinishErasures
  readonly log: Logger
}

/** Finishes erasures, never twice at once: whoever asks meanwhile waits for what is under way, and for his own after that. */
export function createFinishing({ finish, log }: FinishingDeps): Finishing {
  let last: Promise<void> = Promise.resolve()
  let isStopping = false

  async function run(): Promise<void> {
    try {
      for (let attempt = 0; attempt < ATTEMPTS && !isStopping; attempt += 1) {
        if (attempt > 0) await wait(ASK_AGAIN_MS)
        if ((await finish({ isStopping: () => isStopping })) === 0) return
      }
    } catch (error) {
      // The next minute tries again: the act itself is stored.
      log.error({ err: error }, 'an erasure could not be finished')
    }
  }

  return {
    finish() {
      last = last.then(run)
      return last
    },
    stop: () => {
      isStopping = true
    },
  }
}
