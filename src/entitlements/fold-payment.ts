import type { PaymentEvent, Rail, RailProof } from '../provider/event.js'
import { type Access, createIntervalTracker, NO_ACCESS, type TrackerState } from './intervals.js'
import { newestTold } from './order.js'
import type { Policy } from './policy.js'
import { isStronger, strongestProof } from './rail.js'
import { END_REASON_OF, effectOf, type Reading, readEvents } from './reading.js'
import { type Standing, standingAfter } from './standing.js'

/** A one-time payment, folded; it is also all that has to be remembered to take in a newer event. */
export interface FoldedPayment {
  readonly proof: RailProof | null
  readonly productId: string | null
  readonly standing: Standing | null
  readonly access: TrackerState
  /** `createdAt` of the newest event. */
  readonly newestAt: number
}

/** What one event did to a one-time payment. */
export interface PaymentStep {
  readonly reading: Reading<PaymentEvent>
  readonly before: PaymentPoint
  readonly after: PaymentPoint
}

/** How the payment stands at the instant of an event, just before it or just after. */
export interface PaymentPoint {
  readonly standing: Standing | undefined
  readonly access: Access | null
}

/**
 * Folds all events of a one-time payment: it gives access while it is good by a grant.
 * @param observe is told of every step, in order; left out, nothing is gathered for it
 */
export function foldPayment(
  events: readonly PaymentEvent[],
  policy: Policy,
  observe?: (step: PaymentStep) => void,
): FoldedPayment {
  const proof = strongestProof(events)
  const productId = newestTold(events, (event) => event.productId)
  const readings = readEvents(events, () => railOf(proof), policy)
  const newestAt = readings.at(-1)?.event.createdAt ?? Number.NEGATIVE_INFINITY
  return walk({ proof, productId, standing: null, access: NO_ACCESS, newestAt }, readings, observe)
}

/** Takes in an event newer than all before; null: it changes how these were read. */
export function advancePayment(
  folded: FoldedPayment,
  event: PaymentEvent,
  policy: Policy,
): FoldedPayment | null {
  if (event.createdAt <= folded.newestAt) return null
  const proof = isStronger(event.railProof, folded.proof) ? event.railProof : folded.proof
  if (railOf(proof) !== railOf(folded.proof)) return null
  if (event.productId !== null && event.productId !== folded.productId) return null
  const reading = { event, effect: effectOf(event, railOf(proof), policy), index: 0 }
  return walk({ ...folded, proof, newestAt: event.createdAt }, [reading])
}

function walk(
  from: FoldedPayment,
  readings: readonly Reading<PaymentEvent>[],
  observe?: (step: PaymentStep) => void,
): FoldedPayment {
  const { productId } = from
  const tracker = createIntervalTracker(from.access)
  let standing = from.standing ?? undefined
  for (const reading of readings) {
    const { event, effect } = reading
    const before = observe && { standing, access: tracker.accessAt(event.createdAt) }
    standing = standingAfter(standing, event, effect, effect === 'grant')
    const access = standing === 'good' && productId !== null ? { productId, end: null } : null
    tracker.see(event.createdAt, access, { reason: END_REASON_OF[event.type], eventId: event.id })
    if (observe && before) {
      observe({ reading, before, after: { standing, access: tracker.accessAt(event.createdAt) } })
    }
  }
  return { ...from, standing: standing ?? null, access: tracker.state() }
}

export function railOf(proof: RailProof | null): Rail {
  return proof?.rail ?? 'unknown'
}
