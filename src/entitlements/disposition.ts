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
