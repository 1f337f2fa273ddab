import type { Policy } from './policy.js'
import type { KeptPayment, Reading } from './reading.js'
import { isTakenBack, type Standing, standingAfter } from './standing.js'
import { isCycleEvent, makesGood, type SubscriptionReading } from './subscription-reading.js'

/** What a subscription's access stands on; the subscription itself where no payment is known to pay its cycle. */
export type Ground = { readonly paymentId: string } | 'the subscription itself'

/**
 * What an event did to what access stands on, and why:
 * - `informs`: nothing that this follows
 * - `stands`: the payment paid, and access stands on it from now on
 * - `stands_already`: the payment paid, and access stood on it
 * - `other_stands`: the payment paid, and access stays on what it stood on until a cycle says otherwise
 * - `only_succeeded`: what paid is no grant, and so waits for a cycle
 * - `paid_before_end`: the payment first paid before the subscription ended, and does not bring it back
 * - `is_final`: the payment was taken back for good before
 * - `falls`: access stood on the payment that is taken back
 * - `falls_by_policy`: the policy lets any failed payment end what there is
 * - `other_falls`: access did not stand on the payment that is taken back
 * - `fell_before`: the payment stood taken back already
 * - `cycle_stands`: the cycle's payment has paid, and access stands on it
 * - `cycle_awaits`: the cycle's payment pays by a later event
 * - `awaited_stands`: the payment pays the cycle that awaited it
 * - `cycle_fell`: the cycle's payment stands taken back
 * - `cycle_unpaid`: no payment of the cycle is known: access stands on the subscription itself
 * - `cycle_ignored`: no payment of the cycle is known, and the policy asks for one
 * - `ends`: the subscription itself is taken back
 */
export type BasisStep =
  | 'informs'
  | 'stands'
  | 'stands_already'
  | 'other_stands'
  | 'only_succeeded'
  | 'paid_before_end'
  | 'is_final'
  | 'falls'
  | 'falls_by_policy'
  | 'other_falls'
  | 'fell_before'
  | 'cycle_stands'
  | 'cycle_awaits'
  | 'awaited_stands'
  | 'cycle_fell'
  | 'cycle_unpaid'
  | 'cycle_ignored'
  | 'ends'

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
    if (paymentId === null) return 'informs'
    const pays = makesGood(reading, policy)
    const before = standings.get(paymentId)
    const standing = standingAfter(before, event, effect, pays)
    if (standing !== undefined) standings.set(paymentId, standing)
    const step =
      effect === 'take_back'
        ? takeBack(paymentId, event, isTakenBack(before) && standing === before)
        : pays
          ? pay(paymentId, effect === 'grant', index)
          : 'informs'
    if (firstPaid.get(paymentId) === index) awaited.delete(paymentId)
    return step
  }

  function takeBack(paymentId: string, { type }: KeptPayment, fellBefore: boolean): BasisStep {
    awaited.delete(paymentId)
    const fell = standsOn(paymentId)
    const endsAny = ground !== null && type === 'payment.failed' && policy.failedRenewal === 'revoke'
    if (fell || endsAny) {
      ground = null
      return fell ? 'falls' : 'falls_by_policy'
    }
    return fellBefore ? 'fell_before' : 'other_falls'
  }

  function pay(paymentId: string, isGrant: boolean, index: number): BasisStep {
    if (isTakenBack(standings.get(paymentId))) return 'is_final'
    if (standsOn(paymentId)) return 'stands_already'
    const first = firstPaid.get(paymentId) ?? index
    if (awaited.has(paymentId) && first === index) {
      ground = { paymentId }
      return 'awaited_stands'
    }
    if (ground !== null) return 'other_stands'
    if (!isGrant) return 'only_succeeded'
    if (first <= endedAtIndex) return 'paid_before_end'
    ground = { paymentId }
    return 'stands'
  }

  function applyCycle(index: number): BasisStep {
    const paymentId = cyclePayments.get(index)
    if (paymentId === undefined) {
      if (policy.paidCycle === 'informs') return 'cycle_ignored'
      ground = 'the subscription itself'
      cyclesWithoutPayment += 1
      return 'cycle_unpaid'
    }
    if ((firstPaid.get(paymentId) ?? index) > index) {
      awaited.add(paymentId)
      return 'cycle_awaits'
    }
    if (isTakenBack(standings.get(paymentId))) return 'cycle_fell'
    ground = { paymentId }
    return 'cycle_stands'
  }

  return {
    apply(reading) {
      const { event, effect, index } = reading
      if (event.subject === 'payment') return applyPayment(event, reading)
      const step = isCycleEvent(event) ? applyCycle(index) : 'informs'
      if (effect !== 'take_back') return step
      ground = null
      endedAtIndex = index
      awaited.clear()
      return 'ends'
    },
    ground: () => ground,
    isTakenBack: (paymentId) => isTakenBack(standings.get(paymentId)),
    cyclesWithoutPayment: () => cyclesWithoutPayment,
  }
}
