import type { PaymentEvent } from '../provider/event.js'
import type { Policy } from './policy.js'
import type { Reading } from './reading.js'
import { isTakenBack, type Standing, standingAfter } from './standing.js'
import { isCycleEvent, type SubscriptionReading } from './subscription-payments.js'

/** What a subscription stands on when no payment is known to have paid its cycle. */
const THE_SUBSCRIPTION = Symbol('the subscription itself')

export interface Basis {
  /** Takes in the next event of the walk. */
  apply(reading: Reading): void
  /** Whether the subscription stands on something. */
  isThere(): boolean
  isTakenBack(paymentId: string): boolean
  cyclesWithoutPayment(): number
}

/**
 * Follows what a subscription's access stands on: one payment, the subscription itself, or nothing.
 * The basis changes hands only when a cycle is paid, so that a refund of this cycle's payment ends access,
 * and a refund of any other one does not.
 */
export function createBasis(whole: SubscriptionReading, policy: Policy): Basis {
  const standings = new Map<string, Standing | undefined>()
  /** Cycle payments whose first paying event is still to come. */
  const awaited = new Set<string>()
  let basis: string | typeof THE_SUBSCRIPTION | null = null
  let endedAtIndex = -1
  let cyclesWithoutPayment = 0

  function applyPayment(event: PaymentEvent, { effect, index }: Reading): void {
    const paymentId = event.paymentId
    if (paymentId === null) return
    const pays = whole.makesGood.has(index)
    const standing = standingAfter(standings.get(paymentId), event, effect, pays)
    standings.set(paymentId, standing)
    if (effect === 'take_back') {
      awaited.delete(paymentId)
      const endsAny = event.type === 'payment.failed' && policy.failedRenewal === 'revoke'
      if (basis === paymentId || endsAny) basis = null
    } else if (pays && standing === 'good') {
      const first = whole.firstPaid.get(paymentId) ?? index
      const comesBack = effect === 'grant' && basis === null && first > endedAtIndex
      if (comesBack || (awaited.has(paymentId) && first === index)) basis = paymentId
    }
    if (whole.firstPaid.get(paymentId) === index) awaited.delete(paymentId)
  }

  function applyCycle(index: number): void {
    const paymentId = whole.cyclePayments.get(index)
    if (paymentId === undefined) {
      if (policy.paidCycle === 'informs') return
      basis = THE_SUBSCRIPTION
      cyclesWithoutPayment += 1
    } else if ((whole.firstPaid.get(paymentId) ?? index) > index) {
      awaited.add(paymentId)
    } else if (!isTakenBack(standings.get(paymentId))) {
      basis = paymentId
    }
  }

  return {
    apply(reading) {
      const { event, effect, index } = reading
      if (event.subject === 'payment') return applyPayment(event, reading)
      if (isCycleEvent(event)) applyCycle(index)
      if (effect === 'take_back') {
        basis = null
        endedAtIndex = index
        awaited.clear()
      }
    },
    isThere: () => basis !== null,
    isTakenBack: (paymentId) => isTakenBack(standings.get(paymentId)),
    cyclesWithoutPayment: () => cyclesWithoutPayment,
  }
}
