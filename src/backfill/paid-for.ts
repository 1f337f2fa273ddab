/* What the payments of a subscription paid for: a cycle, a plan change that was told, or one that no event tells. */

import type { SourceEvent } from '../entitlements/model.js'
import { type SourceReading, showsPlan } from '../entitlements/reading.js'
import { newestValue } from '../provider/order.js'

/** All events of a subscription and of its payments, and what they show together. */
export interface Told {
  readonly whole: SourceReading
  readonly all: readonly SourceEvent[]
}

/** A payment, and the instant of its first paying event. */
export interface Paid {
  readonly id: string
  readonly at: number
}

/** Every payment that paid, in order. */
export function paidIn({ firstPaid, walk }: SourceReading): readonly Paid[] {
  return [...firstPaid].flatMap(([id, index]) => ({ id, at: walk[index]?.event.createdAt ?? 0 }))
}

/** The payments of cycles that events tell. */
export function paidCycles({ cyclePayments }: SourceReading): ReadonlySet<string> {
  return new Set(cyclePayments.values())
}

/** The plans before and after a change. */
type PlanChange = readonly [from: string | null, to: string]

/** The plan changes that events tell, by the payment that each was charged to. */
export function planChanges({
  walk,
  firstProduct,
  findCharge,
}: SourceReading): ReadonlyMap<string, PlanChange> {
  const changes = new Map<string, PlanChange>()
  let productId = firstProduct
  for (const { event } of walk) {
    if (event.subject !== 'subscription' || !showsPlan(event) || event.productId === null) continue
    const isChange = event.type === 'subscription.updated' && event.productId !== productId
    const charge = isChange ? findCharge(event) : null
    if (charge !== null) changes.set(charge, [productId, event.productId])
    productId = event.productId
  }
  return changes
}

/**
 * The payments that nothing but a plan change explains, though no event tells one: each is for another product than the
 * payment before it, and than the plan as told by then, and they are as many as there are more payments than cycles.
 */
export function untoldCharges(cycles: number, told: Told): ReadonlySet<string> {
  const payments = paidIn(told.whole)
  const known = planChanges(told.whole)
  const spent = paidCycles(told.whole)
  const changing = payments.filter((payment, i) => {
    const before = payments[i - 1]
    if (before === undefined || known.has(payment.id) || spent.has(payment.id)) return false
    const productId = productOf(payment.id, told)
    const plans = [planBefore(payment, told), productOf(before.id, told)]
    return productId !== null && !plans.includes(productId)
  })
  const isMatching = payments.length - known.size - cycles === changing.length
  return new Set(isMatching ? changing.map(({ id }) => id) : [])
}

/** The plan that events had named before a payment was made. */
function planBefore({ id }: Paid, { whole }: Told): string | null {
  const before = whole.walk.slice(0, whole.firstPaid.get(id))
  const named = before.findLast(
    ({ event }) => event.subject === 'subscription' && showsPlan(event) && event.productId !== null,
  )
  return named?.event.productId ?? null
}

/** The payments that no cycle and no plan change explains, also where the plan change is one between other plans. */
export function unexplained(told: Told): readonly Paid[] {
  const spent = paidCycles(told.whole)
  const changes = planChanges(told.whole)
  return paidIn(told.whole).filter(({ id }) => {
    const productId = productOf(id, told)
    const change = changes.get(id)
    return change === undefined ? !spent.has(id) : productId !== null && !change.includes(productId)
  })
}

export function productOf(paymentId: string, { all }: Told): string | null {
  const own = all.filter((event) => event.subject === 'payment' && event.paymentId === paymentId)
  return newestValue(own, (event) => event.productId)
}
