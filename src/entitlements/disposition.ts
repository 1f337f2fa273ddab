import type { NormalizedEvent } from '../provider/event.js'
import type { HoldReason, SourceKey } from './model.js'
import type { Policy } from './policy.js'
import { isDecisive, type SourceEvent } from './reading.js'

/** What became of an event that could be read. */
export type Outcome =
  | { readonly disposition: 'applied' | 'ignored'; readonly reason: null }
  | { readonly disposition: 'held'; readonly reason: HoldReason }

const APPLIED: Outcome = { disposition: 'applied', reason: null }
const IGNORED: Outcome = { disposition: 'ignored', reason: null }
const WAITS_FOR_SOURCE: Outcome = { disposition: 'held', reason: 'source_unknown' }

/**
 * @param source the source that the event belongs to, if it names one
 * @param hold why it waits, by its source's fold
 */
export function outcomeOf(
  event: NormalizedEvent,
  source: SourceKey | null,
  hold: HoldReason | undefined,
  policy: Policy,
): Outcome {
  switch (event.subject) {
    case 'payment':
    case 'subscription':
      return outcomeOfPaid(event, source, hold, policy)
    case 'manual':
      return APPLIED
    case 'customer':
    case 'other':
      return IGNORED
    default:
      return event satisfies never
  }
}

function outcomeOfPaid(
  event: SourceEvent,
  source: SourceKey | null,
  hold: HoldReason | undefined,
  policy: Policy,
): Outcome {
  const decisive = isDecisive(event.type, policy)
  if (source === null) return decisive ? WAITS_FOR_SOURCE : IGNORED
  if (hold !== undefined) return { disposition: 'held', reason: hold }
  const onlyBegan = event.type === 'checkout.initiated' && !decisive
  return onlyBegan ? IGNORED : APPLIED
}

/** What `outcomeOf` says of events without a source: their type tells, and whether they were done by hand. */
export interface SourcelessOutcomes {
  readonly decisive: { readonly types: readonly string[]; readonly outcome: Outcome }
  readonly byHand: Outcome
  readonly others: Outcome
}

/** @param types of all payment, checkout and subscription events */
export function sourcelessOutcomes(
  types: readonly SourceEvent['type'][],
  policy: Policy,
): SourcelessOutcomes {
  const decisive = types.filter((type) => isDecisive(type, policy))
  return { decisive: { types: decisive, outcome: WAITS_FOR_SOURCE }, byHand: APPLIED, others: IGNORED }
}
