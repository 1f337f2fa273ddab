import type { SourceEvent } from './rail.js'
import type { PlainSource } from './source.js'

export type Standing = 'unpaid' | 'good' | 'taken_back'

/** How a payment stands after `walked`, the events of its source up to some point of the walk. */
export function standingOf(source: PlainSource, walked: readonly SourceEvent[], paymentId: string): Standing {
  let standing: Standing = 'unpaid'
  let final = false
  for (const event of walked) {
    if (event.subject !== 'payment' || event.paymentId !== paymentId) continue
    if (source.reading(event) === 'take_back') {
      standing = 'taken_back'
      if (event.type !== 'payment.failed') final = true
    } else if (makesGood(source, event) && !final) {
      standing = 'good'
    }
  }
  return standing
}

/** In a subscription a paid cycle counts too: there `payment.succeeded` is as good as a grant. */
function makesGood(source: PlainSource, event: SourceEvent): boolean {
  if (source.reading(event) === 'grant') return true
  if (source.kind !== 'subscription' || source.policy.paidCycle !== 'grants') return false
  return event.type === 'payment.succeeded'
}
