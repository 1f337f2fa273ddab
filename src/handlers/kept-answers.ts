import type { FeaturedAnswer } from '../entitlements/features.js'
import type { WriteBatch } from '../ingest/commit.js'
import type { Environment } from '../provider/event.js'
import { access, iso, toJson } from './answers.js'
import { tagOf } from './send.js'

/** The two places that the tag leaves out. No value contains these texts, since quotes in a value are escaped. */
const NO_INSTANT = '"asOf":null'
const NO_CURSOR = '"cursor":null'

/** Maximum number of answers, of about 1 kB each. */
const MAX_KEPT = 16_384

/** A rendered answer, without the instant at which it is given. */
export interface RenderedAnswer {
  readonly tag: string
  /** Epoch milliseconds: valid from the instant it was computed until it changes by itself; null: no such end. */
  readonly from: number
  readonly until: number | null
  text(asOf: number): string
}

export type KeptAnswers = ReturnType<typeof createKeptAnswers>

/**
 * Keeps answers about now in memory, since most are asked for repeatedly. The store names the customers that a change
 * touched before it acknowledges the change, so a kept answer is always what the store would answer.
 * @param maxKept 0: none are kept
 */
export function createKeptAnswers(maxKept = MAX_KEPT) {
  // Two halves, and the older is dropped whole: deleting a map's first key walks all keys deleted before it.
  let kept = new Map<string, RenderedAnswer>()
  let older = new Map<string, RenderedAnswer>()
  let changes = 0

  function clear(): void {
    kept.clear()
    older.clear()
  }

  return {
    /** Null if there is no valid one. A kept answer may lie in the future if the clock was set back. */
    find(environment: Environment, customerId: string, now: number): RenderedAnswer | null {
      const key = keyOf(environment, customerId)
      const answer = kept.get(key) ?? older.get(key)
      if (answer === undefined || now < answer.from) return null
      return answer.until === null || now < answer.until ? answer : null
    },
    /** @param answer one about now */
    keep(answer: FeaturedAnswer): RenderedAnswer {
      const rendered = renderAnswer(answer)
      if (changes > 0 || maxKept === 0) return rendered
      if (kept.size >= maxKept / 2) {
        older = kept
        kept = new Map()
      }
      kept.set(keyOf(answer.environment, answer.customerId), rendered)
      return rendered
    },
    forget(environment: Environment, customerIds: readonly string[]): void {
      for (const customerId of customerIds) {
        const key = keyOf(environment, customerId)
        kept.delete(key)
        older.delete(key)
      }
    },
    forgetAll: clear,
    /** Clears everything, and keeps nothing while `change` rewrites large parts of the store. */
    async clearedDuring<Result>(change: () => Promise<Result>): Promise<Result> {
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

/** Before a batch is acknowledged, drops the answers that it outdated; or all answers, if it is unknown which. */
export function forgetting(kept: KeptAnswers, writeBatch: WriteBatch): WriteBatch {
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
 * The tag leaves out `asOf` and the cursor, which move with the clock and with other customers. It includes every end
 * of access, so that a caller's cached answer never outlives one.
 */
export function renderAnswer(answer: FeaturedAnswer): RenderedAnswer {
  const state = JSON.stringify({ ...toJson(access, answer), asOf: null, cursor: null })
  const cursor = `"cursor":${JSON.stringify(answer.cursor)}`
  const text = textWithInstant(state.replace(NO_CURSOR, () => cursor))
  return { tag: tagOf(state), from: answer.asOf, until: answer.validUntil, text }
}

/** Apart from its caller, whose answer would otherwise be kept in memory with the text. */
function textWithInstant(json: string): RenderedAnswer['text'] {
  const [before = '', after = ''] = json.split(NO_INSTANT, 2)
  return (asOf) => `${before}"asOf":"${iso(asOf)}"${after}`
}

function keyOf(environment: Environment, customerId: string): string {
  return `${environment} ${customerId}`
}
