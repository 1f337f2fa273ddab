/* Tracks what a source's access depends on, event by event, and gives the reason for each step. */

import type { KeptPayment } from './model.js'
import type { Policy } from './policy.js'
import { isCycleEvent, type Reading, type SourceReading } from './reading.js'
import type { Note } from './reasons.js'

/** What access depends on, and the event that set it. */
interface Basis {
  /** Null: the subscription itself, if no known payment pays its cycle. */
  readonly paymentId: string | null
  readonly since: string
}

/** A take-back of a payment. A failed payment may still succeed; every other take-back is final. */
interface TakeBack {
  /** The event. */
  readonly by: string
  readonly isFinal: boolean
}

export type BasisTracker = ReturnType<typeof createBasisTracker>

/**
 * Tracks what access depends on: one payment, the subscription itself, or nothing.
 * The basis changes only when a cycle is paid, so that a refund of this cycle's payment ends access, and a refund of
 * any other payment does not.
 */
export function createBasisTracker({ firstPaid, cyclePayments, successPays }: SourceReading, policy: Policy) {
  // Most sources need neither of these maps, and creating one takes as long as walking an event.
  let takenBack: Map<string, TakeBack> | null = null
  /** Cycle payments that are not paid yet or have failed, and the cycle event that waits. */
  let awaited: Map<string, string> | null = null
  let basis: Basis | null = null
  /** The last take-back of the subscription itself. */
  let ended = { index: -1, eventId: '' }
  let cyclesWithoutPayment = 0

  function setBasis(paymentId: string | null, since: string): void {
    if (basis === null || basis.paymentId !== paymentId) basis = { paymentId, since }
  }

  function applyPayment(event: KeptPayment, reading: Reading): Note {
    const { paymentId, type } = event
    if (paymentId === null) return { code: 'payment_unnamed' }
    if (reading.effect === 'take_back') return takeBack(paymentId, event)
    const pays = reading.effect === 'grant' || (successPays && type === 'payment.succeeded')
    return pays ? pay(paymentId, reading) : { code: 'informed' }
  }

  function takeBack(paymentId: string, { id, type }: KeptPayment): Note {
    const before = takenBack?.get(paymentId)
    const isFailure = type === 'payment.failed'
    const isFinal = !isFailure || before?.isFinal === true
    const endsAny = basis !== null && isFailure && policy.failedRenewal === 'revoke'
    if (isFinal) awaited?.delete(paymentId)
    if (before?.isFinal === isFinal && !endsAny) {
      return { code: 'taken_back_already', paymentId, by: before.by }
    }
    takenBack ??= new Map()
    takenBack.set(paymentId, { by: id, isFinal })
    if (basis === null) return { code: 'nothing_to_end', paymentId }
    const { paymentId: kept, since } = basis
    if (kept !== paymentId && !endsAny) return { code: 'basis_kept', paymentId, basis: kept, since }
    basis = null
    if (kept === paymentId) return { code: 'taken_back', paymentId }
    return { code: 'failure_ends_all', paymentId, basis: kept }
  }

  function pay(paymentId: string, { event, effect, index }: Reading): Note {
    const before = takenBack?.get(paymentId)
    if (before?.isFinal) return { code: 'final_take_back', paymentId, by: before.by }
    takenBack?.delete(paymentId)
    if (basis?.paymentId === paymentId) return { code: 'paid_already', paymentId }
    const first = firstPaid.get(paymentId) ?? index
    const cycle = awaited?.get(paymentId)
    if (cycle !== undefined && first <= index) {
      awaited?.delete(paymentId)
      setBasis(paymentId, event.id)
      return { code: 'paid_waiting_cycle', paymentId, cycle }
    }
    if (basis !== null) {
      return { code: 'waits_for_cycle', paymentId, basis: basis.paymentId, since: basis.since }
    }
    if (effect !== 'grant') return { code: 'success_only', paymentId }
    if (first <= ended.index) return { code: 'paid_before_end', paymentId, endedBy: ended.eventId }
    setBasis(paymentId, event.id)
    return { code: 'paid', paymentId }
  }

  function applyCycle({ event, index }: Reading): Note {
    const paymentId = cyclePayments.get(index)
    if (paymentId === undefined) {
      if (policy.paidCycle === 'informs') return { code: 'cycle_ignored' }
      setBasis(null, event.id)
      cyclesWithoutPayment += 1
      return { code: 'cycle_without_payment' }
    }
    const before = takenBack?.get(paymentId)
    if (before?.isFinal) return { code: 'cycle_taken_back', paymentId, by: before.by }
    const isPaid = (firstPaid.get(paymentId) ?? index) <= index
    if (isPaid && before === undefined) {
      setBasis(paymentId, event.id)
      return { code: 'cycle_paid', paymentId }
    }
    awaited ??= new Map()
    awaited.set(paymentId, event.id)
    return before && isPaid
      ? { code: 'cycle_failed', paymentId, by: before.by }
      : { code: 'cycle_paid_later', paymentId }
  }

  return {
    /** Takes the next event of the walk, and returns its effect. */
    apply(reading: Reading): Note {
      const { event, effect, index } = reading
      if (event.subject === 'payment') return applyPayment(event, reading)
      const hadBasis = basis !== null
      const note: Note = isCycleEvent(event) ? applyCycle(reading) : { code: 'informed' }
      if (effect !== 'take_back') return note
      basis = null
      ended = { index, eventId: event.id }
      awaited = null
      return { code: hadBasis ? 'subscription_ended' : 'subscription_ended_already' }
    },
    /** Without a basis there is no access. */
    exists: () => basis !== null,
    /** Undefined: the payment is not revoked. */
    takeBackOf: (paymentId: string) => takenBack?.get(paymentId),
    /** Cycles without a known payment. */
    cyclesWithoutPayment: () => cyclesWithoutPayment,
  }
}
