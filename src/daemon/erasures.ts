import { setTimeout as wait } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Config } from '../config/types.js'
import { createErase, ERASED_AFTER_DELETION, type Erase, type EraseDeps } from '../ingest/erase.js'
import { createFinishing } from '../jobs/finishing.js'
import { startPrivacySchedule } from '../jobs/privacy-schedule.js'
import type { Schedule } from '../operations/schedule.js'
import type { ErasureRecord } from '../store/erasures.js'
import type { Writer } from './writer.js'

export interface ErasuresDeps {
  readonly config: Pick<Config, 'erasure' | 'retention'>
  readonly writer: Pick<Writer, 'finishErasures' | 'dropBodies'>
  readonly write: EraseDeps['write']
  readonly findErasure: EraseDeps['findErasure']
  /** Some of those whom the provider says it deleted, and who are not erased. */
  readonly loadDeleted: () => Promise<readonly Pick<ErasureRecord, 'environment' | 'customerId'>[]>
  readonly clock: () => number
  readonly log: Logger
}

export interface Erasures {
  readonly erase: Erase
  /** Starts what runs by the clock. */
  start(): Schedule
}

/** Longer than that nobody waits for an answer; the work goes on, and asked again the answer tells how it stands. */
const ANSWER_WITHIN_MS = 10_000

/** Erasures by hand and after the provider, finished at once or as soon as can be, and the removal of old bodies. */
export function createErasures(deps: ErasuresDeps): Erasures {
  const { config, writer, write, findErasure, loadDeleted, clock, log } = deps
  const finishing = createFinishing({ finish: writer.finishErasures, log })
  const begin = createErase({ write, findErasure, finish: async () => {} })

  async function eraseDeleted(): Promise<number> {
    const deleted = await loadDeleted()
    for (const { environment, customerId } of deleted) {
      await begin({ environment, customerId, actor: ERASED_AFTER_DELETION, reason: null })
    }
    return deleted.length
  }

  return {
    erase: createErase({ write, findErasure, finish: () => within(ANSWER_WITHIN_MS, finishing.finish()) }),
    start() {
      const schedule = startPrivacySchedule({
        finishErasures: finishing.finish,
        eraseDeleted: config.erasure.onCustomerDeleted ? eraseDeleted : null,
        dropBodies: writer.dropBodies,
        bodiesAfterMs: config.retention?.bodiesAfterMs ?? null,
        clock,
        log,
      })
      return {
        async stop() {
          finishing.stop()
          await schedule.stop()
        },
      }
    },
  }
}

/** Resolves with the work, or without it where that takes longer. */
async function within(ms: number, work: Promise<void>): Promise<void> {
  const done = new AbortController()
  const isLate = wait(ms, undefined, { signal: done.signal }).catch(() => {})
  await Promise.race([work, isLate])
  done.abort()
}
