/*
 * Who has access to what, by the service's own view of an instant: from payments and subscriptions as they are on
 * record, never from events. A cycle gives access while its payment stands, until the next one is paid or the
 * subscription ends; dunning and grace keep it. Once that payment is taken back, the charge of a plan change that is paid
 * afterwards takes its place. A plan change counts while its charge stands.
 */

import type { Payment, Subscription } from './model.js'
import type { World } from './world.js'

export interface Access {
  readonly customerId: string
  readonly productId: string
  readonly active: true
}

/** In the order of customers and products. */
export function accessAt(world: World, at: number): readonly Access[] {
  const found = new Map<string, Access>()
  const note = (customerId: string | null, productId: string | null): void => {
    if (customerId === null || productId === null) return
    found.set(`${customerId} ${productId}`, { customerId, productId, active: true })
  }
  const charges = new Map<string, Payment[]>()
  for (const payment of world.each('payment')) {
    if (payment.createdAt > at) continue
    if (payment.subscriptionId === null)
      note(payment.customerId, stands(payment, at) ? payment.productId : null)
    else if (firstPaidAt(payment) <= at) push(charges, payment.subscriptionId, payment)
  }
  for (const subscription of world.each('subscription')) {
    note(subscription.customerId, productOf(subscription, charges.get(subscription.id) ?? [], at))
  }
  return [...found].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, access]) => access)
}

function push(charges: Map<string, Payment[]>, id: string, payment: Payment): void {
  const known = charges.get(id)
  if (known === undefined) charges.set(id, [payment])
  else known.push(payment)
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

/** @param charges all that were paid by that instant, in order */
function productOf(
  { endedAt, changes }: Subscription,
  charges: readonly Payment[],
  at: number,
): string | null {
  const cycle = charges.filter(({ purpose }) => purpose === 'cycle').reduce(latest, undefined)
  if (cycle === undefined || (endedAt !== null && endedAt <= at)) return null
  const began = firstPaidAt(cycle)
  const basis = charges
    .filter(({ purpose }) => purpose === 'plan_change')
    .filter((charge) => firstPaidAt(charge) >= began)
    .sort((a, b) => firstPaidAt(a) - firstPaidAt(b))
    .reduce((before, charge) => (stands(before, firstPaidAt(charge)) ? before : charge), cycle)
  if (!stands(basis, at)) return null
  const inForce = changes.findLast(({ appliedAt, paymentId }) => {
    if (appliedAt === null || appliedAt < began || appliedAt > at) return false
    const charge = charges.find(({ id }) => id === paymentId)
    return charge === undefined || stands(charge, at)
  })
  return inForce?.targetPriceId ?? cycle.productId
}

function latest(before: Payment | undefined, payment: Payment): Payment {
  return before === undefined || firstPaidAt(payment) >= firstPaidAt(before) ? payment : before
}
