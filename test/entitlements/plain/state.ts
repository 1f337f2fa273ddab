import { basisAfter } from './basis.js'
import { type End, endsAfter } from './ends.js'
import { productAfter, productOfPayment } from './product.js'
import { paymentsIn, type SourceEvent } from './rail.js'
import type { PlainSource } from './source.js'
import { standingOf } from './standing.js'

/** A source at one point of its walk. */
export interface PlainState {
  readonly hasBasis: boolean
  readonly productId: string | null
  /** The earliest end, past or coming. */
  readonly end: End | null
}

/** The state after `walked`, folded from the beginning. */
export function stateAfter(source: PlainSource, walked: readonly SourceEvent[]): PlainState {
  if (source.kind === 'payment') {
    const payments = [...paymentsIn(source.events).keys()]
    const isGood = payments.some((id) => standingOf(source, walked, id) === 'good')
    return { hasBasis: isGood, productId: productOfPayment(source), end: null }
  }
  // Sorting is stable: at the same instant a cancellation names the reason before a term, a term before a lapse.
  const [end = null] = [...endsAfter(source, walked)].sort((one, other) => one.at - other.at)
  return { hasBasis: basisAfter(source, walked) !== null, productId: productAfter(source, walked), end }
}

/** The product that the state gives access to at `instant`, if any. */
export function accessOf(state: PlainState, instant: number): string | null {
  if (!state.hasBasis) return null
  return state.end === null || state.end.at > instant ? state.productId : null
}

/** The events that have happened at `instant`. */
export function walkedAt(source: PlainSource, instant: number): readonly SourceEvent[] {
  return source.events.filter(({ createdAt }) => createdAt <= instant)
}
