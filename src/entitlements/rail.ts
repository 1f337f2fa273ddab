import type { PaymentEvent, Rail, RailProof } from '../provider/event.js'
import { compareByTime } from './order.js'
import type { SourceEvent } from './reading.js'

/** The strongest proof among a payment's events, the earliest among equals; null: nothing proves its rail. */
export function strongestProof(events: readonly PaymentEvent[]): RailProof | null {
  let best: PaymentEvent | null = null
  for (const event of events) best = betterProof(event, best)
  return best?.railProof ?? null
}

function betterProof(event: PaymentEvent, best: PaymentEvent | null): PaymentEvent | null {
  if (event.railProof === null) return best
  if (best === null || isStronger(event.railProof, best.railProof)) return event
  const isEqual = event.railProof.strength === best.railProof?.strength
  return isEqual && compareByTime(event, best) < 0 ? event : best
}

export function isStronger(a: RailProof | null, b: RailProof | null): boolean {
  return (a?.strength ?? 0) > (b?.strength ?? 0)
}

/** A payment's earliest event, and the one that proves its rail; null: none does. */
export interface PaymentRail {
  readonly first: PaymentEvent
  readonly provenBy: PaymentEvent | null
}

/** Of payments' own events, by payment; those that name none belong to no payment. */
export function railsOfPayments(events: readonly SourceEvent[]): ReadonlyMap<string, PaymentRail> {
  const rails = new Map<string, { first: PaymentEvent; provenBy: PaymentEvent | null }>()
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
