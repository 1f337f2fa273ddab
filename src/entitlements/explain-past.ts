import type { Ground } from './basis.js'
import type { SubscriptionReading } from './subscription-reading.js'
import type { WalkStep } from './walk-subscription.js'

/** Which earlier events of a walk brought about what a later one meets. Ids are of events; '' where there is none. */
export interface Past {
  /** Takes in a step that is over. */
  see(step: WalkStep): void
  /** Since when access depends on what it depends on. */
  since(): string
  takenBackBy(paymentId: string): string
  /** What ended the subscription itself last. */
  endedBy(): string
  /** The cycle event that waits for the payment. */
  awaitedBy(paymentId: string): string
  /** The payment that a step is about: the event's own, or that of the cycle it speaks of. */
  paymentOf(step: WalkStep): string
}

export function createPast({ cyclePayments }: SubscriptionReading): Past {
  const takenBack = new Map<string, string>()
  const awaited = new Map<string, string>()
  let since = ''
  let ended = ''

  function paymentOf({ reading: { event, index } }: WalkStep): string {
    return (event.subject === 'payment' ? event.paymentId : cyclePayments.get(index)) ?? ''
  }

  return {
    see(step) {
      const { event, effect } = step.reading
      if (basisOf(step.before.ground) !== basisOf(step.after.ground)) since = event.id
      if (step.basis === 'ends') ended = event.id
      if (step.basis === 'cycle_awaits') awaited.set(paymentOf(step), event.id)
      const takesBack = event.subject === 'payment' && effect === 'take_back'
      if (takesBack && step.basis !== 'fell_before') takenBack.set(paymentOf(step), event.id)
    },
    since: () => since,
    takenBackBy: (paymentId) => takenBack.get(paymentId) ?? '',
    endedBy: () => ended,
    awaitedBy: (paymentId) => awaited.get(paymentId) ?? '',
    paymentOf,
  }
}

/** The payment that access depends on; null: the subscription itself; undefined: nothing. */
export function basisOf(ground: Ground | null): string | null | undefined {
  if (ground === null) return undefined
  return ground === 'the subscription itself' ? null : ground.paymentId
}
