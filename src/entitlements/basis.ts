/* Follows what a subscription's access depends on, event by event, and gives the reason for each step. */

import type { Policy } from './policy.js'
import { isTakenBack, type KeptPayment, type Reading, type Standing, standingAfter } from './reading.js'
import type { Note } from './reasons.js'
import { isCycleEvent, makesGood, type SubscriptionReading } from './subscription-reading.js'

/** What a subscription's access depends on, and the event that made it so. */
interface Basis {
  /** Null: the subscription itself, where no payment is known to pay its cycle. */
  readonly paymentId: string | null
  readonly since: string
}

export interface BasisTracker {
  /** Takes in the next event of the walk, and says what it did. */
  apply(reading: Reading): Note
  /** Without a basis there is no access. */
  exists(): boolean
  isTakenBack(paymentId: string): boolean
  /** The event that took the payment back last; '' where none did. */
  takenBackBy(paymentId: string): string
  /** Cycles of which no payment is known. */
  cyclesWithoutPayment(): number
}

/**
 * Follows what a subscription's access depends on: one payment, the subscription itself, or nothing.
 * The basis changes hands only when a cycle is paid, so that a refund of this cycle's payment ends access,
 * and a refund of any other one does not.
 */
export function createBasisTracker(
  { firstPaid, cyclePayments }: SubscriptionReading,
  policy: Policy,
): BasisTracker {
  const standings = new Map<string, Standing>()
  const takenBack = new Map<string, string>()
  /** Cycle payments whose first paying event is still to come, and the cycle event that waits. */
  const awaited = new Map<string, string>()
  let basis: Basis | null = null
  /** The last take-back of the subscription itself. */
  let ended = { index: -1, eventId: '' }
  let cyclesWithoutPayment = 0

  const takenBackBy = (paymentId: string): string => takenBack.get(paymentId) ?? ''

  function setBasis(paymentId: string | null, since: string): void {
    if (basis === null || basis.paymentId !== paymentId) basis = { paymentId, since }
  }

  function applyPayment(event: KeptPayment, reading: Reading): Note {
    const { effect, index } = reading
    const { paymentId } = event
    if (paymentId === null) return { code: 'payment_unnamed' }
    const pays = makesGood(reading, policy)
    const before = standings.get(paymentId)
    const standing = standingAfter(before, event, effect, pays)
    if (standing !== undefined) standings.set(paymentId, standing)
    const note: Note =
      effect === 'take_back'
        ? takeBack(paymentId, event, isTakenBack(before) && standing === before)
        : pays
          ? pay(paymentId, effect === 'grant', reading)
          : { code: 'informed' }
    if (firstPaid.get(paymentId) === index) awaited.delete(paymentId)
    return note
  }

  function takeBack(paymentId: string, { id, type }: KeptPayment, wasTakenBack: boolean): Note {
    awaited.delete(paymentId)
    const isBasis = basis?.paymentId === paymentId
    const endsAny = basis !== null && type === 'payment.failed' && policy.failedRenewal === 'revoke'
    if (wasTakenBack && !endsAny) return { code: 'taken_back_already', paymentId, by: takenBackBy(paymentId) }
    takenBack.set(paymentId, id)
    if (basis === null) return { code: 'nothing_to_end', paymentId }
    if (!isBasis && !endsAny) {
      return { code: 'basis_kept', paymentId, basis: basis.paymentId, since: basis.since }
    }
    const ends: Note = isBasis
      ? { code: 'taken_back', paymentId }
      : { code: 'failure_ends_all', paymentId, basis: basis.paymentId }
    basis = null
    return ends
  }

  function pay(paymentId: string, isGrant: boolean, { event, index }: Reading): Note {
    if (isTakenBack(standings.get(paymentId))) {
      return { code: 'final_take_back', paymentId, by: takenBackBy(paymentId) }
    }
    if (basis?.paymentId === paymentId) return { code: 'paid_already', paymentId }
    const first = firstPaid.get(paymentId) ?? index
    const cycle = awaited.get(paymentId)
    if (cycle !== undefined && first === index) {
      setBasis(paymentId, event.id)
      return { code: 'paid_waiting_cycle', paymentId, cycle }
    }
    if (basis !== null) {
      return { code: 'waits_for_cycle', paymentId, basis: basis.paymentId, since: basis.since }
    }
    if (!isGrant) return { code: 'success_only', paymentId }
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
    if ((firstPaid.get(paymentId) ?? index) > index) {
      awaited.set(paymentId, event.id)
      return { code: 'cycle_paid_later', paymentId }
    }
    if (isTakenBack(standings.get(paymentId))) {
      return { code: 'cycle_taken_back', paymentId, by: takenBackBy(paymentId) }
    }
    setBasis(paymentId, event.id)
    return { code: 'cycle_paid', paymentId }
  }

  return {
    apply(reading) {
      const { event, effect, index } = reading
      if (event.subject === 'payment') return applyPayment(event, reading)
      const hadBasis = basis !== null
      const note: Note = isCycleEvent(event) ? applyCycle(reading) : { code: 'informed' }
      if (effect !== 'take_back') return note
      basis = null
      ended = { index, eventId: event.id }
      awaited.clear()
      return { code: hadBasis ? 'subscription_ended' : 'subscription_ended_already' }
    },
    exists: () => basis !== null,
    isTakenBack: (paymentId) => isTakenBack(standings.get(paymentId)),
    takenBackBy,
    cyclesWithoutPayment: () => cyclesWithoutPayment,
  }
}
