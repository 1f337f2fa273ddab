import type { Rail } from '../provider/event.js'
import { type BasisStep, createBasis, type Ground } from './basis.js'
import { type Access, createIntervalTracker, type End, type TrackerState } from './intervals.js'
import type { EndReason } from './model.js'
import type { Policy } from './policy.js'
import { END_REASON_OF, type KeptSubscription, type Reading } from './reading.js'
import { isCycleEvent, namingKindOf, type SubscriptionReading } from './subscription-reading.js'

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

/** What is known at the end of the walk. */
interface SubscriptionWalk {
  readonly rail: Rail
  readonly access: TrackerState
  /** The product in force. */
  readonly productId: string | null
  readonly shown: Shown
  readonly cyclesWithoutPayment: number
}

/** Where the walk stands at the instant of an event, just before it or just after. */
interface WalkPoint {
  readonly ground: Ground | null
  readonly ends: EndsState
  readonly plan: PlanState
  /** The product in force. */
  readonly productId: string | null
  readonly shown: Shown
  readonly access: Access | null
}

/** What one event did in the walk. */
export interface WalkStep {
  readonly reading: Reading
  readonly code: BasisStep
  readonly before: WalkPoint
  readonly after: WalkPoint
}

/**
 * Walks a subscription's events in order: it gives the product of its plan while it stands on something and the
 * earliest of its ends lies ahead.
 * @param observe is told of every step, in order; left out, nothing is gathered for it
 */
export function walkSubscription(
  whole: SubscriptionReading,
  policy: Policy,
  observe?: (step: WalkStep) => void,
): SubscriptionWalk {
  const basis = createBasis(whole, policy)
  const ends = createEnds(policy)
  const plan = createPlan(whole, basis.isTakenBack)
  const tracker = createIntervalTracker()
  let shown = NOTHING_SHOWN

  const pointAt = (at: number): WalkPoint => ({
    ground: basis.ground(),
    ends: ends.state(),
    plan: plan.state(),
    productId: plan.product(),
    shown,
    access: tracker.accessAt(at),
  })

  for (const reading of whole.walk) {
    const { event } = reading
    const before = observe && pointAt(event.createdAt)
    const code = basis.apply(reading)
    plan.apply(reading)
    if (event.subject === 'subscription') {
      ends.apply(event)
      shown = showAfter(shown, event)
    }
    const productId = plan.product()
    const access = basis.ground() !== null && productId !== null ? { productId, end: ends.earliest() } : null
    tracker.see(event.createdAt, access, { reason: END_REASON_OF[event.type], eventId: event.id })
    if (observe && before) observe({ reading, code, before, after: pointAt(event.createdAt) })
  }
  return {
    rail: whole.rail,
    access: tracker.state(),
    productId: plan.product(),
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

interface EndsState {
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
function createEnds(policy: Policy): Ends {
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

interface Naming {
  readonly productId: string
  /** The payment that a plan change was charged to; while it stands taken back, the change does not count. */
  readonly charge: string | null
}

interface PlanState {
  /** Those that may still count, oldest first: a charged one may fall back on those before it. */
  readonly namings: readonly Naming[]
}

export interface Plan {
  /** Takes in the next event of the walk. */
  apply(reading: Reading): void
  /** The product in force; null where no event names one. */
  product(): string | null
  state(): PlanState
}

/** Follows which product a subscription gives: that of the newest naming that counts. */
function createPlan(
  { namingKind, firstProduct, findCharge }: SubscriptionReading,
  isTakenBack: (paymentId: string) => boolean,
): Plan {
  let namings: readonly Naming[] = []

  function product(): string | null {
    const counting = namings.findLast(({ charge }) => charge === null || !isTakenBack(charge))
    return counting?.productId ?? firstProduct
  }

  return {
    apply(reading) {
      const { event } = reading
      if (event.productId === null || namingKindOf(reading) !== namingKind) return
      const changesPlan = event.type === 'subscription.updated' && event.productId !== product()
      const charge = changesPlan ? findCharge(event) : null
      const [only] = namings
      const isKnown = namings.length === 1 && only?.charge === null && only.productId === event.productId
      if (charge === null && isKnown) return
      const naming = { productId: event.productId, charge }
      // Without a charge it counts whatever happens, so that none before it ever will again.
      namings = charge === null ? [naming] : [...namings, naming]
    },
    product,
    state: () => ({ namings }),
  }
}
