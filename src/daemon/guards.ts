import type { Logger } from 'pino'
import { LatchkeyError } from '../errors.js'
import type { KeptAnswers } from '../handlers/kept-answers.js'
import { isStoreBroken } from '../store/engine.js'
import type { Writer } from './writer.js'

/** Does something more with every call of a function. */
export type Guard = <Args extends readonly unknown[], Answer>(
  ask: (...args: Args) => Promise<Answer>,
) => (...args: Args) => Promise<Answer>

/** Calls only while `check` does not throw. */
export function checkedBy(check: () => void): Guard {
  return (ask) =>
    async (...args) => {
      check()
      return ask(...args)
    }
}

/** Tells of every failure after which neither the file nor its disk can be trusted. */
export function failingWith(fail: (error: unknown) => void): Guard {
  return (ask) =>
    async (...args) => {
      try {
        return await ask(...args)
      } catch (error) {
        if (isStoreBroken(error)) fail(error)
        throw error
      }
    }
}

/** A store that can't be read must never look like a customer without access. */
export function orUnavailable(log: Logger): Guard {
  return (read) =>
    async (...args) => {
      try {
        return await read(...args)
      } catch (error) {
        log.error({ err: error }, 'the store could not be read')
        throw new LatchkeyError('store_unavailable', 'The store can not be read now.', { cause: error })
      }
    }
}

/** Before a batch is acknowledged, no answer is kept that it made untrue; nor any, should it be unknown which. */
export function forgetting(kept: KeptAnswers, writeBatch: Writer['writeBatch']): Writer['writeBatch'] {
  return async (deliveries) => {
    try {
      const written = await writeBatch(deliveries)
      for (const { environment, customerIds } of written.touched) kept.forget(environment, customerIds)
      return written
    } catch (error) {
      kept.forgetAll()
      throw error
    }
  }
}
