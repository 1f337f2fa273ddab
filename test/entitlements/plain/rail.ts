import type { NormalizedEvent, PaymentEvent, Rail, SubscriptionEvent } from '../../../src/provider/event.js'
import { byTime } from './order.js'

export type SourceEvent = PaymentEvent | SubscriptionEvent

export function isSourceEvent(event: NormalizedEvent): event is SourceEvent {
  return event.subject === 'payment' || event.subject === 'subscription'
}

/** The events of each payment, the payments in the order of their first events. */
export function paymentsIn(events: readonly SourceEvent[]): Map<string, PaymentEvent[]> {
  const payments = new Map<string, PaymentEvent[]>()
  for (const event of [...events].sort(byTime)) {
    if (event.subject !== 'payment' || event.paymentId === null) continue
    payments.set(event.paymentId, [...(payments.get(event.paymentId) ?? []), event])
  }
  return payments
}

/** The strongest proof among the events of one payment, the earliest among equals. */
export function railOfPayment(events: readonly PaymentEvent[]): Rail {
  const proofs = [...events].sort(byTime).flatMap(({ railProof }) => railProof ?? [])
  const strongest = Math.max(...proofs.map(({ strength }) => strength))
  return proofs.find(({ strength }) => strength === strongest)?.rail ?? 'unknown'
}

/** The rail of the earliest payment that has a known one. */
export function railOfSource(events: readonly SourceEvent[]): Rail {
  const rails = [...paymentsIn(events).values()].map(railOfPayment)
  return rails.find((rail) => rail !== 'unknown') ?? 'unknown'
}
