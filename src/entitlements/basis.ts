import type { Policy } from './policy.js'
import { isTakenBack, type KeptPayment, type Reading, type Standing, standingAfter } from './reading.js'
import type { NoteCode } from './reasons.js'
import { isCycleEvent, makesGood, type SubscriptionReading } from './subscription-reading.js'

/** What a subscription's access stands on; the subscription itself where no payment is known to pay its cycle. */
export type Ground = { readonly paymentId: string } | 'the subscription itself'

/** What an event did to the basis: the codes by which an explanation gives the reason. */
export type BasisStep = Extract<
  NoteCode,
  | 'informed'
  | 'payment_unnamed'
  | 'paid'
  | 'paid_already'
  | 'waits_for_cycle'
  | 'success_only'
  | 'paid_before_end'
  | 'final_take_back'
  | 'taken_back'
  | 'failure_ends_all'
  | 'basis_kept'
  | 'nothing_to_end'
  | 'taken_back_already'
  | 'cycle_paid'
  | 'cycle_paid_later'
  | 'paid_waiting_cycle'
  | 'cycle_taken_back'
  | 'cycle_without_payment'
  | 'cycle_ignored'
  | 'subscription_ended'
  | 'subscription_ended_already'
>

export interface Basis {
  /** Takes in the next event of the walk, and tells what it did. */
  apply(reading: Reading): BasisStep
  /** What the subscription stands on; null: on nothing, and so it gives no access. */
  ground(): Ground | null
  isTakenBack(paymentId: string): boolean
  /** Cycles of which no payment is known. */
  cyclesWithoutPayment(): number
}

/**
 * Follows what a subscription's access stands on: one payment, the subscription itself, or nothing.
 * The ground changes hands only when a cycle is paid, so that a refund of this cycle's payment ends access,
 * and a refund of any other one does not.
 */
export function createBasis({ firstPaid, cyclePayments }: SubscriptionReading, policy: Policy): Basis {
  const standings = new Map<string, Standing>()
  /** Cycle payments whose first paying event is still to come. */
  const awaited = new Set<string>()
  let ground: Ground | null = null
  /** Of the last take-back of the subscription itself. */
  let endedAtIndex = -1
  let cyclesWithoutPayment = 0

  function standsOn(paymentId: string): boolean {
    return typeof ground === 'object' && ground?.paymentId === paymentId
  }

  function applyPayment(event: KeptPayment, reading: Reading): BasisStep {
    const { effect, index } = reading
    const { paymentId } = event
    if (paymentId === null) return 'payment_unnamed'
    const pays = makesGood(reading, policy)
    const before = standings.get(paymentId)
    const standing = standingAfter(before, event, effect, pays)
    if (standing !== undefined) standings.set(paymentId, standing)
    const step =
      effect === 'take_back'
        ? takeBack(paymentId, event, isTakenBack(before) && standing === before)
        : pays
          ? pay(paymentId, effect === 'grant', index)
          : 'informed'
    if (firstPaid.get(paymentId) === index) awaited.delete(paymentId)
    return step
  }

  function takeBack(paymentId: string, { type }: KeptPayment, fellBefore: boolean): BasisStep {
    awaited.delete(paymentId)
    const fell = standsOn(paymentId)
    const endsAny = ground !== null && type === 'payment.failed' && policy.failedRenewal === 'revoke'
    if (fell || endsAny) {
      ground = null
      return fell ? 'taken_back' : 'failure_ends_all'
    }
    if (fellBefore) return 'taken_back_already'
    return ground === null ? 'nothing_to_end' : 'basis_kept'
  }

  function pay(paymentId: string, isGrant: boolean, index: number): BasisStep {
    if (isTakenBack(standings.get(paymentId))) return 'final_take_back'
    if (standsOn(paymentId)) return 'paid_already'
    const first = firstPaid.get(paymentId) ?? index
    if (awaited.has(paymentId) && first === index) {
      ground = { paymentId }
      return 'paid_waiting_cycle'
    }
    if (ground !== null) return 'waits_for_cycle'
    if (!isGrant) return 'success_only'
    if (first <= endedAtIndex) return 'paid_before_end'
    ground = { paymentId }
    return 'paid'
  }

  function applyCycle(index: number): BasisStep {
    const paymentId = cyclePayments.get(index)
    if (paymentId === undefined) {
      if (policy.paidCycle === 'informs') return 'cycle_ignored'
      ground = 'the subscription itself'
      cyclesWithoutPayment += 1
      return 'cycle_without_payment'
    }
    if ((firstPaid.get(paymentId) ?? index) > index) {
      awaited.add(paymentId)
      return 'cycle_paid_later'
    }
    if (isTakenBack(standings.get(paymentId))) return 'cycle_taken_back'
    ground = { paymentId }
    return 'cycle_paid'
  }

  return {
    apply(reading) {
      const { event, effect, index } = reading
      if (event.subject === 'payment') return applyPayment(event, reading)
      const wasNothing = ground === null
      const step = isCycleEvent(event) ? applyCycle(index) : 'informed'
      if (effect !== 'take_back') return step
      ground = null
      endedAtIndex = index
      awaited.clear()
      return wasNothing ? 'subscription_ended_already' : 'subscription_ended'
    },
    ground: () => ground,
    isTakenBack: (paymentId) => isTakenBack(standings.get(paymentId)),
    cyclesWithoutPayment: () => cyclesWithoutPayment,
  }
}
