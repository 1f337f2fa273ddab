import type { NormalizedEvent, PaymentEvent, Rail, RailProof } from '../provider/event.js'
import { compareByTime } from './order.js'

/** The strongest proof among a payment's events, the earliest among equals; null: nothing proves its rail. */
export function strongestProof(events: readonly PaymentEvent[]): RailProof | null {
  let best: PaymentEvent | null = null
  for (const event of events) {
    const known = best?.railProof ?? null
    const isEqual = event.railProof !== null && event.railProof.strength === known?.strength
    const isEarlier = best !== null && compareByTime(event, best) < 0
    if (isStronger(event.railProof, known) || (isEqual && isEarlier)) best = event
  }
  return best?.railProof ?? null
}

export function isStronger(a: RailProof | null, b: RailProof | null): boolean {
  return (a?.strength ?? 0) > (b?.strength ?? 0)
}

/** A payment's own events and the rail that they prove. */
export interface PaymentRail {
  readonly proof: RailProof | null
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
  return new Map([...grouped].map(([paymentId, ofPayment]) => [paymentId, railOf(ofPayment)]))
}

function railOf(events: readonly PaymentEvent[]): PaymentRail {
  const proof = strongestProof(events)
  return { proof, rail: proof?.rail ?? 'unknown', events }
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
