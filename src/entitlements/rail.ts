import type { NormalizedEvent, PaymentEvent, Rail, RailProof } from '../provider/event.js'
import { compareByTime } from './order.js'

/** A payment's rail: the strongest proof among its events, the earliest among equals. */
export function railOfPayment(events: readonly PaymentEvent[]): Rail {
  let best: { event: PaymentEvent; proof: RailProof } | null = null
  for (const event of events) {
    const proof = event.railProof
    if (proof === null) continue
    const stronger = best === null ? 1 : proof.strength - best.proof.strength
    if (best === null || stronger > 0 || (stronger === 0 && compareByTime(event, best.event) < 0)) {
      best = { event, proof }
    }
  }
  return best?.proof.rail ?? 'unknown'
}

/** A payment's own events and the rail that they prove. */
export interface PaymentRail {
  readonly rail: Rail
  readonly events: readonly PaymentEvent[]
}

/** Groups payment events by payment; those that name none belong to no payment. */
export function railsOfPayments(events: readonly NormalizedEvent[]): Map<string, PaymentRail> {
  const grouped = new Map<string, PaymentEvent[]>()
  for (const event of events) {
    if (event.subject !== 'payment' || event.paymentId === null) continue
    const known = grouped.get(event.paymentId)
    if (known) known.push(event)
    else grouped.set(event.paymentId, [event])
  }
  return new Map(
    [...grouped].map(([id, ofPayment]) => [id, { rail: railOfPayment(ofPayment), events: ofPayment }]),
  )
}

/** A subscription's rail: that of its earliest payment, by its first event, whose rail is known. */
export function railOfSubscription(payments: Iterable<PaymentRail>): Rail {
  let earliest: PaymentEvent | null = null
  let rail: Rail = 'unknown'
  for (const payment of payments) {
    if (payment.rail === 'unknown') continue
    for (const event of payment.events) {
      if (earliest === null || compareByTime(event, earliest) < 0) {
        earliest = event
        rail = payment.rail
      }
    }
  }
  return rail
}
