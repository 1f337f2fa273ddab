import type { SourceKey, SourceKind } from '../../../src/entitlements/model.js'
import type { Policy } from '../../../src/entitlements/policy.js'
import type { NormalizedEvent, PaymentEvent, Rail } from '../../../src/provider/event.js'
import { byText } from './order.js'
import { isSourceEvent, paymentsIn, railOfPayment, railOfSource, type SourceEvent } from './rail.js'
import { type Reading, rankOf, readingOf } from './reading.js'

/** One source, with everything that is known from the whole set of its events, whatever the instant. */
export interface PlainSource {
  readonly kind: SourceKind
  readonly policy: Policy
  /** In the order of the walk: `createdAt`, rank, id. */
  readonly events: readonly SourceEvent[]
  readonly reading: (event: SourceEvent) => Reading
  readonly railOf: (paymentId: string) => Rail
  /** Of one payment, in the order of the walk; empty for a payment that has none or that is not here. */
  readonly payingEvents: (paymentId: string) => readonly PaymentEvent[]
}

export function readSource(events: readonly NormalizedEvent[], key: SourceKey, policy: Policy): PlainSource {
  const own = events.filter(isSourceEvent)
  const sourceRail = railOfSource(own)
  const payments = paymentsIn(own)
  const rails = new Map([...payments].map(([id, ofPayment]) => [id, railOfPayment(ofPayment)]))
  const railOf = (paymentId: string) => rails.get(paymentId) ?? 'unknown'
  const railFor = (event: SourceEvent) =>
    event.subject === 'payment' && event.paymentId !== null ? railOf(event.paymentId) : sourceRail

  const readings = new Map(own.map((event) => [event.id, readingOf(event, railFor(event), policy)]))
  const reading = (event: SourceEvent) => readings.get(event.id) ?? 'neutral'
  const rank = (event: SourceEvent) => rankOf(event, reading(event))
  const walk = own.sort(
    (one, other) => one.createdAt - other.createdAt || rank(one) - rank(other) || byText(one.id, other.id),
  )

  const payingEvents = (paymentId: string) => {
    const ofPayment = walk
      .filter((event) => event.subject === 'payment')
      .filter((event) => event.paymentId === paymentId)
    const granting = ofPayment.filter((event) => reading(event) === 'grant')
    if (granting.length > 0 || policy.paidCycle === 'informs') return granting
    return ofPayment.filter(({ type }) => type === 'payment.succeeded')
  }
  const paying = new Map([...payments.keys()].map((id) => [id, payingEvents(id)]))

  return {
    kind: key.kind,
    policy,
    events: walk,
    reading,
    railOf,
    payingEvents: (paymentId) => paying.get(paymentId) ?? [],
  }
}
