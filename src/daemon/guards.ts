import type { KeptAnswers } from '../handlers/kept-answers.js'
import type { Writer } from './writer.js'

/** Adds an action to every call of a function. */
export type Guard = <Args extends readonly unknown[], Answer>(
  ask: (...args: Args) => Promise<Answer>,
) => (...args: Args) => Promise<Answer>

/** Before a batch is acknowledged, drops the answers that it outdated; or all answers, if it is unknown which. */
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
