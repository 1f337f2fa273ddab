import type { Rail } from '../provider/event.js'
import { compareByTime } from './order.js'
import type { KeptPayment, SourceEvent } from './reading.js'

/** Of two events of a payment, the one with the stronger proof, the earlier of equals; null: no proof by now. */
function betterProof(event: KeptPayment, best: KeptPayment | null): KeptPayment | null {
  if (event.railProof === null) return best
  const lead = event.railProof.strength - (best?.railProof?.strength ?? 0)
  return lead > 0 || (lead === 0 && best !== null && compareByTime(event, best) < 0) ? event : best
}

/** What the strongest proof among a payment's events says, the earliest of equals. */
export function railOfPayment(events: readonly KeptPayment[]): Rail {
  let provenBy: KeptPayment | null = null
  for (const event of events) provenBy = betterProof(event, provenBy)
  return provenBy?.railProof?.rail ?? 'unknown'
}

/** A payment's earliest event, and the one that proves its rail; null: none does. */
export interface PaymentRail {
  readonly first: KeptPayment
  readonly provenBy: KeptPayment | null
}

/** Of payments' own events, by payment; those that name none belong to no payment. */
export function railsOfPayments(events: readonly SourceEvent[]): ReadonlyMap<string, PaymentRail> {
  const rails = new Map<string, { first: KeptPayment; provenBy: KeptPayment | null }>()
  for (const event of events) {
    if (event.subject !== 'payment' || event.paymentId === null) continue
    const known = rails.get(event.paymentId)
    if (known === undefined) {
      rails.set(event.paymentId, { first: event, provenBy: betterProof(event, null) })
    } else {
      if (compareByTime(event, known.first) < 0) known.first = event
      known.provenBy = betterProof(event, known.provenBy)
    }
  }
  return rails
}

export function railIn(payment: PaymentRail | undefined): Rail {
  return payment?.provenBy?.railProof?.rail ?? 'unknown'
}

/** A subscription's rail: that of its earliest payment, by its first event, whose rail is known. */
export function railOfSubscription(payments: Iterable<PaymentRail>): Rail {
  let earliest: PaymentRail | undefined
  for (const payment of payments) {
    if (payment.provenBy === null) continue
    if (earliest === undefined || compareByTime(payment.first, earliest.first) < 0) earliest = payment
  }
  return railIn(earliest)
}
