import type { PaymentEvent } from '../provider/event.js'
import type { Policy } from './policy.js'
import type { Reading } from './reading.js'
import { isTakenBack, type Standing, standingAfter } from './standing.js'
import { isCycleEvent, type WalkFacts } from './subscription-reading.js'

/** What a subscription's access stands on; the subscription itself where no payment is known to pay its cycle. */
type Ground = { readonly paymentId: string } | 'the subscription itself'

export interface BasisState {
  readonly ground: Ground | null
  /** How payments stand that may still matter, by id. */
  readonly standings: Readonly<Record<string, Standing>>
  /** The index of the last take-back of the subscription itself; -1: none. */
  readonly endedAtIndex: number
  readonly cyclesWithoutPayment: number
}

export const NO_BASIS: BasisState = {
  ground: null,
  standings: {},
  endedAtIndex: -1,
  cyclesWithoutPayment: 0,
}

export interface Basis {
  /** Takes in the next event of the walk. */
  apply(reading: Reading): void
  /** Whether the subscription stands on something. */
  isThere(): boolean
  isTakenBack(paymentId: string): boolean
  state(): BasisState
}

/**
 * Follows what a subscription's access stands on: one payment, the subscription itself, or nothing.
 * The ground changes hands only when a cycle is paid, so that a refund of this cycle's payment ends access,
 * and a refund of any other one does not.
 */
export function createBasis(facts: WalkFacts, policy: Policy, from: BasisState): Basis {
  const standings = new Map(Object.entries(from.standings))
  /** Cycle payments whose first paying event is still to come. */
  const awaited = new Set<string>()
  let { ground, endedAtIndex, cyclesWithoutPayment } = from

  function standsOn(paymentId: string): boolean {
    return typeof ground === 'object' && ground?.paymentId === paymentId
  }

  function applyPayment(event: PaymentEvent, { effect, index }: Reading): void {
    const paymentId = event.paymentId
    if (paymentId === null) return
    const pays = facts.makesGood.has(index)
    const standing = standingAfter(standings.get(paymentId), event, effect, pays)
    if (standing !== undefined) standings.set(paymentId, standing)
    if (effect === 'take_back') {
      awaited.delete(paymentId)
      const endsAny = event.type === 'payment.failed' && policy.failedRenewal === 'revoke'
      if (standsOn(paymentId) || endsAny) ground = null
    } else if (pays && standing === 'good') {
      const first = facts.firstPaid.get(paymentId) ?? index
      const comesBack = effect === 'grant' && ground === null && first > endedAtIndex
      if (comesBack || (awaited.has(paymentId) && first === index)) ground = { paymentId }
    }
    if (facts.firstPaid.get(paymentId) === index) awaited.delete(paymentId)
  }

  function applyCycle(index: number): void {
    const paymentId = facts.cyclePayments.get(index)
    if (paymentId === undefined) {
      if (policy.paidCycle === 'informs') return
      ground = 'the subscription itself'
      cyclesWithoutPayment += 1
    } else if ((facts.firstPaid.get(paymentId) ?? index) > index) {
      awaited.add(paymentId)
    } else if (!isTakenBack(standings.get(paymentId))) {
      ground = { paymentId }
    }
  }

  return {
    apply(reading) {
      const { event, effect, index } = reading
      if (event.subject === 'payment') return applyPayment(event, reading)
      if (isCycleEvent(event)) applyCycle(index)
      if (effect === 'take_back') {
        ground = null
        endedAtIndex = index
        awaited.clear()
      }
    },
    isThere: () => ground !== null,
    isTakenBack: (paymentId) => isTakenBack(standings.get(paymentId)),
    state: () => ({ ground, standings: Object.fromEntries(standings), endedAtIndex, cyclesWithoutPayment }),
  }
}
