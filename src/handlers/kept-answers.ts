import type { AccessAnswer } from '../entitlements/model.js'
import type { Environment } from '../provider/event.js'
import { access, iso, toJson } from './answers.js'
import { tagOf } from './send.js'

/** The places of the two that are no part of the tag: no value holds these words, since quotes within one are escaped. */
const NO_INSTANT = '"asOf":null'
const NO_CURSOR = '"cursor":null'

/** So many at most, of about 1 kB each. */
const MAX_KEPT = 16_384

/** An answer as it goes over the wire, but for the instant at which it is given. */
interface RenderedAnswer {
  readonly tag: string
  /** Epoch milliseconds: it holds from when it was worked out until it changes by itself; null: no such end. */
  readonly from: number
  readonly until: number | null
  text(asOf: number): string
}

/**
 * Answers about now that are kept in memory, since most are asked for again. One is used only while the store says
 * the same: whatever changes the store says whose answers it touched, before it is acknowledged.
 */
export interface KeptAnswers {
  /** Null where none is kept, or it does not hold any more, or not yet: clocks are set back, too. */
  find(environment: Environment, customerId: string, now: number): RenderedAnswer | null
  /** @param answer one about now */
  keep(answer: AccessAnswer): RenderedAnswer
  forget(environment: Environment, customerIds: readonly string[]): void
  forgetAll(): void
  /** Keeps nothing while something changes the store at large, and forgets all. */
  aside<Result>(change: () => Promise<Result>): Promise<Result>
}

export function createKeptAnswers(maxKept = MAX_KEPT): KeptAnswers {
  // Two halves, of which the older goes whole: to delete the first key of a map walks all that were deleted before it.
  let kept = new Map<string, RenderedAnswer>()
  let older = new Map<string, RenderedAnswer>()
  let changes = 0

  function clear(): void {
    kept.clear()
    older.clear()
  }

  return {
    find(environment, customerId, now) {
      const key = keyOf(environment, customerId)
      const answer = kept.get(key) ?? older.get(key)
      if (answer === undefined || now < answer.from) return null
      return answer.until === null || now < answer.until ? answer : null
    },
    keep(answer) {
      const rendered = renderAnswer(answer)
      if (changes > 0) return rendered
      if (kept.size >= maxKept / 2) {
        older = kept
        kept = new Map()
      }
      kept.set(keyOf(answer.environment, answer.customerId), rendered)
      return rendered
    },
    forget(environment, customerIds) {
      for (const customerId of customerIds) {
        const key = keyOf(environment, customerId)
        kept.delete(key)
        older.delete(key)
      }
    },
    forgetAll: clear,
    async aside(change) {
      changes += 1
      clear()
      try {
        return await change()
      } finally {
        changes -= 1
      }
    },
  }
}

/** What a write has touched: whose answers may be others now. */
interface Touching {
  readonly touched: readonly { readonly environment: Environment; readonly customerIds: readonly string[] }[]
}

/** Before a batch is acknowledged, no answer is kept that it made untrue; none at all where it is unknown which. */
export function forgetting<Batch, Written extends Touching>(
  kept: KeptAnswers,
  writeBatch: (batch: Batch) => Promise<Written>,
): (batch: Batch) => Promise<Written> {
  return async (batch) => {
    try {
      const written = await writeBatch(batch)
      for (const { environment, customerIds } of written.touched) kept.forget(environment, customerIds)
      return written
    } catch (error) {
      kept.forgetAll()
      throw error
    }
  }
}

/**
 * The tag leaves out `asOf` and the cursor, which move with the clock and with other customers, and takes in every
 * end of access: what a caller keeps by it never outlives one.
 */
export function renderAnswer(answer: AccessAnswer): RenderedAnswer {
  const state = JSON.stringify({ ...toJson(access, answer), asOf: null, cursor: null })
  const told = state.replace(NO_CURSOR, () => `"cursor":${JSON.stringify(answer.cursor)}`)
  const [before = '', after = ''] = told.split(NO_INSTANT, 2)
  return {
    tag: tagOf(state),
    from: answer.asOf,
    until: answer.validUntil,
    text: (asOf) => `${before}"asOf":"${iso(asOf)}"${after}`,
  }
}

function keyOf(environment: Environment, customerId: string): string {
  return `${environment} ${customerId}`
}
