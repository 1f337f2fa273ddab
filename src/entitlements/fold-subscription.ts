import type { Rail } from '../provider/event.js'
import type { Policy } from './policy.js'
import type { SourceEvent } from './reading.js'
import { rememberSubscription, type SubscriptionMemory } from './subscription-memory.js'
import { readSubscription } from './subscription-reading.js'
import { type SubscriptionWalk, WALK_START, walkSubscription } from './walk-subscription.js'

export interface FoldedSubscription extends SubscriptionWalk {
  readonly rail: Rail
  readonly memory: SubscriptionMemory | null
}

/**
 * Folds all events of a subscription: first the whole set is read (rails, which payment paid which cycle),
 * then walked in order.
 */
export function foldSubscription(events: readonly SourceEvent[], policy: Policy): FoldedSubscription {
  const whole = readSubscription(events, policy)
  const walked = walkSubscription(WALK_START, whole.walk, whole, policy)
  return { ...walked, rail: whole.rail, memory: rememberSubscription(whole, walked.state) }
}
