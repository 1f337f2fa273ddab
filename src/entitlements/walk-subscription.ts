/* Walks the events of a subscription in order: its basis, its ends and its plan make its access. */

import type { Rail } from '../provider/event.js'
import { createBasisTracker } from './basis.js'
import { type Access, createIntervalTracker, type End, type TrackerState } from './intervals.js'
import type { EndReason } from './model.js'
import type { Policy } from './policy.js'
import { END_REASON_OF, type KeptSubscription, type SourceEvent } from './reading.js'
import type { Note } from './reasons.js'
import { isCycleEvent, namingRankOf, type SubscriptionReading } from './subscription-reading.js'

/** What subscription events say beside access: shown to people, never decisive. */
export interface Shown {
  readonly pastDueSince: number | null
  readonly cancelAtPeriodEnd: boolean
  readonly periodEnd: number | null
  readonly providerStatus: string | null
}

export const NOTHING_SHOWN: Shown = {
  pastDueSince: null,
  cancelAtPeriodEnd: false,
  periodEnd: null,
  providerStatus: null,
}

/** What the events of any source come to. */
export interface Folded {
  readonly rail: Rail
  readonly access: TrackerState
  /** The product in force. */
  readonly productId: string | null
  readonly shown: Shown
  readonly cyclesWithoutPayment: number
}

/** What holds at the instant of an event, just before it or just after. */
interface WalkPoint {
  readonly ends: Ends
  readonly namings: readonly Naming[]
  /** The product in force. */
  readonly productId: string | null
  readonly shown: Shown
  readonly access: Access | null
}

/** What one event did in the walk. */
export interface WalkStep {
  readonly event: SourceEvent
  /** What it did to the basis. */
  readonly note: Note
  readonly before: WalkPoint
  readonly after: WalkPoint
  /** The event that took a payment back last; '' where none did. */
  readonly takenBackBy: (paymentId: string) => string
}

/**
 * Walks a subscription's events in order: it gives the product of its plan while it has a basis and the earliest of its
 * ends lies ahead.
 * @param observe gets every step, in order; without it, nothing is gathered
 */
export function walkSubscription(
  whole: SubscriptionReading,
  policy: Policy,
  observe?: (step: WalkStep) => void,
): Folded {
  const basis = createBasisTracker(whole, policy)
  const tracker = createIntervalTracker()
  let ends = NO_ENDS
  let namings: readonly Naming[] = []
  let shown = NOTHING_SHOWN

  // The newest naming counts whose charge, if it has one, is not taken back.
  const productInForce = (): string | null =>
    namings.findLast(({ charge }) => charge === null || !basis.isTakenBack(charge))?.productId ??
    whole.firstProduct
  const pointAt = (at: number): WalkPoint => ({
    ends,
    namings,
    productId: productInForce(),
    shown,
    access: tracker.accessAt(at),
  })

  for (const reading of whole.walk) {
    const { event } = reading
    const before = observe && pointAt(event.createdAt)
    const note = basis.apply(reading)
    if (event.productId !== null && namingRankOf(reading) === whole.namingRank) {
      const changesPlan = event.type === 'subscription.updated' && event.productId !== productInForce()
      namings = namingsAfter(namings, event.productId, changesPlan ? whole.findCharge(event) : null)
    }
    if (event.subject === 'subscription') {
      ends = endsAfter(ends, event, policy)
      shown = showAfter(shown, event)
    }
    const productId = productInForce()
    const access = basis.exists() && productId !== null ? { productId, end: earliest(ends) } : null
    tracker.see(event.createdAt, access, { reason: END_REASON_OF[event.type], eventId: event.id })
    if (observe && before) {
      observe({ event, note, before, after: pointAt(event.createdAt), takenBackBy: basis.takenBackBy })
    }
  }
  return {
    rail: whole.rail,
    access: tracker.state(),
    productId: productInForce(),
    shown,
    cyclesWithoutPayment: basis.cyclesWithoutPayment(),
  }
}

function showAfter(before: Shown, event: KeptSubscription): Shown {
  const isRenewal = event.type === 'subscription.renewed'
  const isPastDue = event.type === 'subscription.past_due'
  return {
    pastDueSince: isPastDue ? event.createdAt : isRenewal ? null : before.pastDueSince,
    // A renewal shows that no earlier word of a cancellation holds, unless it repeats it.
    cancelAtPeriodEnd: event.cancelAtPeriodEnd ?? (before.cancelAtPeriodEnd && !isRenewal),
    periodEnd: event.expiresAt ?? before.periodEnd,
    providerStatus: event.status ?? before.providerStatus,
  }
}

/** The ends that a subscription runs to, whatever its basis. */
interface Ends {
  readonly canceled: End | null
  readonly completed: End | null
  readonly lapsed: End | null
}

const NO_ENDS: Ends = { canceled: null, completed: null, lapsed: null }

function endsAfter(before: Ends, event: KeptSubscription, policy: Policy): Ends {
  let { canceled, completed, lapsed } = before
  if (event.type === 'subscription.canceled') {
    canceled = earlier(canceled, endOf(event, 'canceled', cancellationAt(event, policy)))
  } else if (isCycleEvent(event) && canceled !== null) {
    canceled = event.expiresAt === null ? null : endOf(event, 'canceled', event.expiresAt)
  }
  if (event.cycles !== null && showsTerms(event)) completed = completionOf(event, policy)
  if (policy.lapseAfter !== null && event.expiresAt !== null) {
    lapsed = endOf(event, 'lapsed', event.expiresAt + policy.lapseAfter)
  }
  return { canceled, completed, lapsed }
}

/** The end that comes first, or came first; null: none is known. */
function earliest({ canceled, completed, lapsed }: Ends): End | null {
  return earlier(earlier(canceled, completed), lapsed)
}

/** A cancellation takes effect at once, or at the period's end that it shows. */
function cancellationAt(
  { createdAt, expiresAt, cancelAtPeriodEnd }: KeptSubscription,
  policy: Policy,
): number {
  const waits = cancelAtPeriodEnd === true || policy.canceled === 'period_end'
  return waits && expiresAt !== null && expiresAt > createdAt ? expiresAt : createdAt
}

/** The types that show where a fixed term stands; the newest decides. */
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

interface Naming {
  readonly productId: string
  /** The payment that a plan change was charged to; while that is taken back, the change does not count. */
  readonly charge: string | null
}

/** Those that may still count, oldest first: a charged one may fall back on those before it. */
function namingsAfter(
  namings: readonly Naming[],
  productId: string,
  charge: string | null,
): readonly Naming[] {
  // Without a charge it counts whatever happens, so that none before it ever will again.
  if (charge !== null) return [...namings, { productId, charge }]
  const [only] = namings
  const isKnown = namings.length === 1 && only?.charge === null && only.productId === productId
  return isKnown ? namings : [{ productId, charge }]
}
