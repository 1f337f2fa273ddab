import type { End } from './intervals.js'
import type { EndReason } from './model.js'
import type { Policy } from './policy.js'
import type { KeptSubscription } from './reading.js'
import { isCycleEvent } from './subscription-reading.js'

export interface EndsState {
  readonly canceled: End | null
  readonly completed: End | null
  readonly lapsed: End | null
}

export interface Ends {
  /** Takes in the next subscription event of the walk. */
  apply(event: KeptSubscription): void
  /** The end that comes first, or came first; null: none is known. */
  earliest(): End | null
  state(): EndsState
}

/** Follows the ends that a subscription runs to, whatever it stands on: canceled, completed, lapsed. */
export function createEnds(policy: Policy): Ends {
  let canceled: End | null = null
  let completed: End | null = null
  let lapsed: End | null = null

  return {
    apply(event) {
      if (event.type === 'subscription.canceled') {
        canceled = earlier(canceled, endOf(event, 'canceled', cancellationAt(event, policy)))
      } else if (isCycleEvent(event) && canceled !== null) {
        canceled = event.expiresAt === null ? null : endOf(event, 'canceled', event.expiresAt)
      }
      if (event.cycles !== null && showsTerms(event)) completed = completionOf(event, policy)
      if (policy.lapseAfter !== null && event.expiresAt !== null) {
        lapsed = endOf(event, 'lapsed', event.expiresAt + policy.lapseAfter)
      }
    },
    earliest: () => earlier(earlier(canceled, completed), lapsed),
    state: () => ({ canceled, completed, lapsed }),
  }
}

/** A cancellation takes effect at once, or at the period's end that it shows. */
function cancellationAt(
  { createdAt, expiresAt, cancelAtPeriodEnd }: KeptSubscription,
  policy: Policy,
): number {
  const waits = cancelAtPeriodEnd === true || policy.canceled === 'period_end'
  return waits && expiresAt !== null && expiresAt > createdAt ? expiresAt : createdAt
}

/** The types that show where a fixed term stands; each decides anew. */
function showsTerms({ type }: KeptSubscription): boolean {
  return type === 'subscription.created' || type === 'subscription.renewed' || type === 'subscription.updated'
}

function completionOf(event: KeptSubscription, policy: Policy): End | null {
  const { current, total } = event.cycles ?? { current: null, total: null }
  const isLast = current !== null && total !== null && current >= total
  if (!isLast || event.expiresAt === null || policy.completed === 'keep') return null
  return endOf(event, 'completed', event.expiresAt)
}

function endOf(event: KeptSubscription, reason: EndReason, at: number): End {
  return { at, reason, eventId: event.id }
}

function earlier(a: End | null, b: End | null): End | null {
  if (a === null || b === null) return a ?? b
  return b.at < a.at ? b : a
}
