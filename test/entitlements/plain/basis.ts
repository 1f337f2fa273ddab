import type { PaymentEvent, SubscriptionEvent } from '../../../src/provider/event.js'
import { cyclePaymentOf, isCycleEvent } from './cycle-payment.js'
import type { SourceEvent } from './rail.js'
import type { PlainSource } from './source.js'
import { standingOf } from './standing.js'

/** What a subscription's access stands on: a payment, the subscription itself, or nothing. */
export type Basis = { readonly paymentId: string } | 'subscription' | null

/** The basis of a subscription after `walked`. */
export function basisAfter(source: PlainSource, walked: readonly SourceEvent[]): Basis {
  let basis: Basis = null
  walked.forEach((event, index) => {
    const upTo = walked.slice(0, index + 1)
    basis =
      event.subject === 'payment'
        ? afterPayment(source, upTo, event, basis)
        : afterSubscription(source, upTo, event, basis)
  })
  return basis
}

/** Rules 1 and 2, and the second case of rule 3. `walked` ends with the event. */
function afterPayment(
  source: PlainSource,
  walked: readonly SourceEvent[],
  event: PaymentEvent,
  basis: Basis,
): Basis {
  const { paymentId } = event
  if (paymentId === null) return basis
  const reading = source.reading(event)
  if (reading === 'take_back') {
    if (event.type === 'payment.failed' && source.policy.failedRenewal === 'revoke') return null
    return isPayment(basis, paymentId) ? null : basis
  }
  if (standingOf(source, walked, paymentId) !== 'good') return basis
  if (source.payingEvents(paymentId)[0] === event && isAwaited(source, walked, paymentId))
    return { paymentId }
  if (reading === 'grant' && basis === null && !isCutOff(source, walked, paymentId)) return { paymentId }
  return basis
}

/** Rule 3, and then rule 4. `walked` ends with the event. */
function afterSubscription(
  source: PlainSource,
  walked: readonly SourceEvent[],
  event: SubscriptionEvent,
  basis: Basis,
): Basis {
  // Rule 4 comes last, so whatever rule 3 would set is gone again.
  if (source.reading(event) === 'take_back') return null
  if (!isCycleEvent(event)) return basis
  const paymentId = cyclePaymentOf(source, event)
  if (paymentId === null) return source.policy.paidCycle === 'grants' ? 'subscription' : basis
  const isPaid = source.payingEvents(paymentId).some((paying) => walked.includes(paying))
  if (!isPaid || standingOf(source, walked, paymentId) === 'taken_back') return basis
  return { paymentId }
}

/** Whether a walked cycle event waits for this payment: neither taken back nor cut off by rule 4 since. */
function isAwaited(source: PlainSource, walked: readonly SourceEvent[], paymentId: string): boolean {
  return walked.some((cycle, index) => {
    if (!isCycleEvent(cycle) || cyclePaymentOf(source, cycle) !== paymentId) return false
    // The cycle event itself is among them: as a take-back it ends, last of all, what it began.
    const since = walked.slice(index)
    return !since.some(
      (event) =>
        source.reading(event) === 'take_back' &&
        (event.subject === 'subscription' || event.paymentId === paymentId),
    )
  })
}

/** Whether rule 4 applied after the payment's first paying event: then rule 1 does not bring it back. */
function isCutOff(source: PlainSource, walked: readonly SourceEvent[], paymentId: string): boolean {
  const [firstPaying] = source.payingEvents(paymentId)
  return walked.some(
    (event, index) =>
      event.subject === 'subscription' &&
      source.reading(event) === 'take_back' &&
      walked.slice(0, index).some((earlier) => earlier === firstPaying),
  )
}

function isPayment(basis: Basis, paymentId: string): boolean {
  return basis !== null && basis !== 'subscription' && basis.paymentId === paymentId
}
