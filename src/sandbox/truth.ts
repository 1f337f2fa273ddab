/*
 * Who has access to what, by the service's own view of an instant: from payments and subscriptions as they are on
 * record, never from events. A cycle gives access while its payment stands, until the next one is paid or the
 * subscription ends; dunning and grace keep it. Once that payment is taken back, the charge of a plan change that is paid
 * afterwards takes its place. A plan change counts while its charge stands.
 */

import type { Payment, Subscription } from './model.js'
import type { World } from './world.js'

/** In the order of customers and products. */
export function accessAt(world: World, at: number) {
  const found = new Map<string, { customerId: string; productId: string; active: true }>()
  const note = (customerId: string | null, productId: string | null): void => {
    if (customerId === null || productId === null) return
    found.set(`${customerId} ${productId}`, { customerId, productId, active: true })
  }
  const paid = [...world.each('payment')].filter((payment) => firstPaidAt(payment) <= at)
  const charges = Map.groupBy(paid, ({ subscriptionId }) => subscriptionId)
  for (const payment of charges.get(null) ?? []) {
    if (stands(payment, at)) note(payment.customerId, payment.productId)
  }
  for (const subscription of world.each('subscription')) {
    note(subscription.customerId, productOf(subscription, charges.get(subscription.id) ?? [], at))
  }
  return [...found].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, access]) => access)
}

/** Whether the merchant has, or is sure to get, the money of a payment at that instant. */
function stands({ statusTimeline, deposit, chargebackAt }: Payment, at: number): boolean {
  if (chargebackAt !== null && chargebackAt <= at) return false
  const status = statusTimeline.findLast((entry) => entry.at <= at)?.status
  if (status === 'COMPLETED' || status === 'PARTIALLY_REFUNDED') return true
  return status === 'AUTHORIZED' && deposit === null
}

function firstPaidAt({ statusTimeline, deposit }: Payment): number {
  const paid = statusTimeline.find(
    ({ status }) => status === 'COMPLETED' || (status === 'AUTHORIZED' && deposit === null),
  )
  return paid?.at ?? Number.POSITIVE_INFINITY
}

/** @param charges all that were paid by that instant */
function productOf({ endedAt, changes }: Subscription, charges: readonly Payment[], at: number) {
  const inOrder = charges.toSorted((one, other) => firstPaidAt(one) - firstPaidAt(other))
  const cycle = inOrder.findLast(({ purpose }) => purpose === 'cycle')
  if (cycle === undefined || (endedAt !== null && endedAt <= at)) return null
  const began = firstPaidAt(cycle)
  const basis = inOrder
    .filter((charge) => charge.purpose === 'plan_change' && firstPaidAt(charge) >= began)
    .reduce((before, charge) => (stands(before, firstPaidAt(charge)) ? before : charge), cycle)
  if (!stands(basis, at)) return null
  const inForce = changes.findLast(({ appliedAt, paymentId }) => {
    if (appliedAt === null || appliedAt < began || appliedAt > at) return false
    const charge = charges.find(({ id }) => id === paymentId)
    return charge === undefined || stands(charge, at)
  })
  return inForce?.targetPriceId ?? cycle.productId
}
