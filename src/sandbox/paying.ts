/* What a buyer does, and what the clock does: a payment moves, and what hangs on it follows. */

import { z } from 'zod'
import { CRYPTO, EMAIL, METHODS } from '../provider/requests.js'
import { refuse } from './codes.js'
import { tellCustomer } from './events.js'
import type { Customer, Payment, Subscription } from './model.js'
import { CUSTOMER, OUTCOMES } from './model.js'
import { chargeCard, chooseMethod, DEPOSIT, fail, isPayable, paymentDue, takeDeposit } from './payment.js'
import { followCycle, isIncomplete, isRunning, subscriptionDue, upgradeCharged } from './subscription.js'
import type { World } from './world.js'

export const PAY = z.object({
  /** Left out: as chosen before, else the first that the product takes. */
  method: z.enum(METHODS).optional(),
  outcome: z.enum(OUTCOMES).optional(),
  ...DEPOSIT.shape,
  /** Of a buyer whom nobody knows yet. */
  email: EMAIL.optional(),
  crypto: CRYPTO.optional(),
})

/** @throws {ServiceError} `INVALID_PAYMENT_STATUS_TRANSITION`, `CHECKOUT_EMAIL_REQUIRED`, and those of the method */
export function pay(world: World, payment: Payment, spec: z.output<typeof PAY>): Payment {
  return followed(world, paid(world, payment, spec))
}

function paid(world: World, payment: Payment, spec: z.output<typeof PAY>): Payment {
  const { outcome = 'success', email, crypto } = spec
  const breaks = outcome === 'technical_failure'
  const isLate = ['AUTHORIZED', 'RECEIVED', 'BRIDGING'].includes(payment.status)
  if (isLate && breaks) return fail(world, payment, outcome, 'present')
  if (payment.status === 'RECEIVED') return takeDeposit(world, payment, spec)
  assertPayable(world, payment)
  const known = identify(world, payment, email)
  const [first = 'CARD'] = world.find('product', known.productId)?.paymentMethods ?? []
  const chosen = chooseMethod(world, known, spec.method ?? known.method ?? first, crypto)
  if (chosen.deposit === null) return chargeCard(world, chosen, outcome, 'present')
  return breaks ? fail(world, chosen, outcome, 'present') : takeDeposit(world, chosen, spec)
}

function assertPayable(world: World, payment: Payment): void {
  const subscription = world.find('subscription', payment.subscriptionId)
  const isOver = subscription !== undefined && !isRunning(subscription) && !isIncomplete(subscription)
  if (isPayable(payment, world.now) && !isOver) return
  const why = isOver ? `its subscription is ${subscription.status}` : `it is ${payment.status}`
  const late = payment.expiresAt !== null && world.now >= payment.expiresAt ? ' and past its deadline' : ''
  refuse('INVALID_PAYMENT_STATUS_TRANSITION', `The payment ${payment.id} can't be paid: ${why}${late}.`)
}

/** Everything that is paid has a customer: the hosted checkout asks for an email where none is known. */
function identify(world: World, payment: Payment, email: string | undefined): Payment {
  if (payment.customerId !== null) return payment
  if (email === undefined) {
    refuse('CHECKOUT_EMAIL_REQUIRED', 'The payment has no customer: send the `email` of the buyer.')
  }
  const { id: customerId } = customerByEmail(world, { email })
  const subscription = world.find('subscription', payment.subscriptionId)
  if (subscription !== undefined) world.put('subscription', { ...subscription, customerId })
  return world.update('payment', payment, { customerId })
}

/** The one that is not deleted. */
export const findByEmail = (world: World, email: string): Customer | undefined =>
  world.list('customer', { email: email.toLowerCase() }).find(({ deletedAt }) => deletedAt === null)

/** The customer with that address, made if there is none. */
export function customerByEmail(world: World, given: z.input<typeof CUSTOMER>): Customer {
  const found = findByEmail(world, given.email)
  if (found !== undefined) return fillIn(world, found, given)
  const fields = {
    ...world.fresh('cus'),
    ...CUSTOMER.parse(given),
    deletedAt: null,
    card: 'success',
  } as const
  return tellCustomer(world, 'customer.created', world.put('customer', fields))
}

/** A name fills in only where none is known. */
export function fillIn(world: World, customer: Customer, given: Partial<z.input<typeof CUSTOMER>>): Customer {
  const name = customer.name ?? given.name ?? null
  const country = given.country ?? customer.country
  if (name === customer.name && country === customer.country) return customer
  return updateCustomer(world, { ...customer, name, country })
}

export function updateCustomer(world: World, changed: Customer): Customer {
  return tellCustomer(world, 'customer.updated', world.update('customer', changed, {}))
}

/** What follows from where a payment stands now. */
export function followed(world: World, payment: Payment): Payment {
  const subscription = world.find('subscription', payment.subscriptionId)
  if (subscription === undefined) return payment
  if (payment.purpose === 'plan_change') upgradeCharged(world, subscription, payment)
  else followCycle(world, subscription, payment)
  return world.find('payment', payment.id) ?? payment
}

/** The time has come for what is next of a payment or a subscription. */
export function fallDue(world: World, due: Payment | Subscription): void {
  world.moveTo(due.dueAt ?? 0)
  if ('currentCycle' in due) subscriptionDue(world, due)
  else followed(world, paymentDue(world, due))
}
