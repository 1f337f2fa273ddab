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
  if (isPaid(source, walked, paymentId) && isAwaited(source, walked, paymentId)) return { paymentId }
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
  return isGood(source, walked, paymentId) ? { paymentId } : basis
}

/**
 * Whether a walked cycle event still waits for this payment, just before the last event of `walked`: the payment has not
 * been good since, nor taken back for good, and rule 4 has not applied.
 */
function isAwaited(source: PlainSource, walked: readonly SourceEvent[], paymentId: string): boolean {
  return walked.some((cycle, index) => {
    if (!isCycleEvent(cycle) || cyclePaymentOf(source, cycle) !== paymentId) return false
    const points = walked.slice(index, -1).map((_, since) => walked.slice(0, index + since + 1))
    if (points.some((point) => isGood(source, point, paymentId))) return false
    // The cycle event itself is among them: as a take-back it ends, last of all, what it began.
    return !walked.slice(index).some((event) => {
      if (source.reading(event) !== 'take_back') return false
      if (event.subject === 'subscription') return true
      return event.paymentId === paymentId && event.type !== 'payment.failed'
    })
  })
}

function isPaid(source: PlainSource, walked: readonly SourceEvent[], paymentId: string): boolean {
  return source.payingEvents(paymentId).some((paying) => walked.includes(paying))
}

function isGood(source: PlainSource, walked: readonly SourceEvent[], paymentId: string): boolean {
  return isPaid(source, walked, paymentId) && standingOf(source, walked, paymentId) === 'good'
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
