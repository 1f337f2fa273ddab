import {
  advanceSource,
  type FoldableEvent,
  type FoldedSource,
  foldSource,
} from '../../src/entitlements/fold-source.js'
import type { SourceKey } from '../../src/entitlements/model.js'
import { DOCUMENTED_POLICY } from '../../src/entitlements/policy.js'
import { pay, SUBSCRIPTION, sub } from './explained.js'

export const DAY = 24 * 60

/** Takes in one event after the other, folding all again where that is asked for. */
export function foldInTurn(key: SourceKey, events: readonly FoldableEvent[]): FoldedSource {
  let folded = foldSource(key, events.slice(0, 1), DOCUMENTED_POLICY)
  for (let count = 1; count < events.length; count += 1) {
    folded =
      takeIn(folded, events.slice(0, count + 1)) ??
      foldSource(key, events.slice(0, count + 1), DOCUMENTED_POLICY)
  }
  return folded
}

/** The last of the events, taken in; null: all must be folded again. */
function takeIn(folded: FoldedSource, events: readonly FoldableEvent[]): FoldedSource | null {
  const newest = events.at(-1) as FoldableEvent
  const stored = events.slice(0, -1)
  return advanceSource(folded, newest, DOCUMENTED_POLICY, (paymentId) =>
    stored.every((event) => event.subject !== 'payment' || event.paymentId !== paymentId),
  )
}

export interface Case {
  readonly name: string
  readonly key?: SourceKey
  readonly events: readonly FoldableEvent[]
}

/** The same answer is asked of what was folded whole, and of what was itself taken in event by event. */
export function inBothWays({ key = SUBSCRIPTION, events }: Case): (FoldedSource | null)[] {
  const earlier = events.slice(0, -1)
  return [foldSource(key, earlier, DOCUMENTED_POLICY), foldInTurn(key, earlier)].map((folded) =>
    takeIn(folded, events),
  )
}

export const unproven = { railProof: null } as const
export const nameless = { productId: null } as const
export const BEGUN = [pay('evt_1', 'payment.authorized', 'pay_1', 0), sub('evt_2', 'subscription.created', 1)]
export const RENEWED = [
  ...BEGUN,
  pay('evt_3', 'payment.authorized', 'pay_2', 30 * DAY - 10),
  sub('evt_4', 'subscription.renewed', 30 * DAY),
]
export const RENEWED_UNPAID = [...BEGUN, sub('evt_4', 'subscription.renewed', 30 * DAY)]

/** More payments than are remembered: of `pay_old_0` nothing is. */
export const LONG_AGO = Array.from({ length: 20 }, (_, i) => [
  pay(`evt_paid_${i}`, 'payment.authorized', `pay_old_${i}`, i * 30 * DAY),
  sub(`evt_renewed_${i}`, 'subscription.renewed', i * 30 * DAY + 1),
]).flat()

/** So many payments, a minute apart: more than a few in a day are not lawful. */
export const inOneDay = (count: number) => [
  ...BEGUN,
  ...Array.from({ length: count - 1 }, (_, i) =>
    pay(`evt_day_${i}`, 'payment.authorized', `pay_day_${i}`, i + 2),
  ),
]

export const DECLINED_FOR_YEARS = [
  ...BEGUN,
  ...Array.from({ length: 20 }, (_, i) =>
    pay(`evt_failed_${i}`, 'payment.failed', `pay_failed_${i}`, (i + 1) * 30 * DAY),
  ),
]
