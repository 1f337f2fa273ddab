/* What a buyer does, and what the clock does: a payment moves, and what hangs on it follows. */

import { ServiceError } from './codes.js'
import { type DepositSpec, finishBridge, takeDeposit } from './deposit.js'
import { tellCustomer } from './events.js'
import {
  CARD_METHODS,
  type Customer,
  type Due,
  type DueKind,
  type Method,
  type Outcome,
  type Payment,
} from './model.js'
import { type CryptoChoice, chargeCard, chooseMethod, expire, failTechnically, isPayable } from './payment.js'
import { upgradeCharged } from './plan-change.js'
import {
  confirmCycle,
  followFirstPayment,
  graceEnds,
  isIncomplete,
  isRunning,
  periodEnds,
  retryRenewal,
} from './subscription.js'
import type { World } from './world.js'

export interface PaySpec extends DepositSpec {
  /** Left out: as chosen before, else the first that the product takes. */
  readonly method?: Method | undefined
  readonly outcome?: Outcome | undefined
  /** Of a buyer whom nobody knows yet. */
  readonly email?: string | undefined
  readonly crypto?: CryptoChoice | undefined
}

/**
 * The buyer pays, or tries to.
 * @throws {ServiceError} `INVALID_PAYMENT_STATUS_TRANSITION`, `CHECKOUT_EMAIL_REQUIRED`, and those of the method
 */
export function pay(world: World, given: Payment, spec: PaySpec): Payment {
  const outcome = spec.outcome ?? 'success'
  const isLate = given.status === 'AUTHORIZED' || given.status === 'RECEIVED' || given.status === 'BRIDGING'
  if (isLate && outcome === 'technical_failure') return followed(world, failTechnically(world, given))
  if (given.status === 'RECEIVED') return followed(world, takeDeposit(world, given, spec))
  assertPayable(world, given)
  const known = identify(world, given, spec.email)
  const chosen = chooseMethod(
    world,
    known,
    spec.method ?? known.method ?? firstMethod(world, known),
    spec.crypto,
  )
  if (chosen.deposit !== null) {
    const isFailed = outcome === 'technical_failure'
    return followed(world, isFailed ? failTechnically(world, chosen) : takeDeposit(world, chosen, spec))
  }
  return followed(world, chargeCard(world, chosen, outcome, 'present'))
}

function assertPayable(world: World, payment: Payment): void {
  const subscription = world.find('subscription', payment.subscriptionId)
  const isOver = subscription !== undefined && !isRunning(subscription) && !isIncomplete(subscription)
  if (isPayable(payment, world.now) && !isOver) return
  const why = isOver ? `its subscription is ${subscription.status}` : `it is ${payment.status}`
  const late = payment.expiresAt !== null && world.now >= payment.expiresAt ? ' and past its deadline' : ''
  const message = `The payment ${payment.id} can't be paid: ${why}${late}.`
  throw new ServiceError('INVALID_PAYMENT_STATUS_TRANSITION', message)
}

function firstMethod(world: World, { productId }: Payment): Method {
  return world.find('product', productId)?.paymentMethods[0] ?? 'CARD'
}

/** Everything that is paid has a customer: the hosted checkout asks for an email where none is known. */
export function identify(world: World, payment: Payment, email: string | undefined): Payment {
  if (payment.customerId !== null) return payment
  if (email === undefined) {
    throw new ServiceError(
      'CHECKOUT_EMAIL_REQUIRED',
      'The payment has no customer: send the `email` of the buyer.',
    )
  }
  const { id } = customerByEmail(world, email, null)
  const subscription = world.find('subscription', payment.subscriptionId)
  if (subscription !== undefined) world.put('subscription', { ...subscription, customerId: id })
  return world.put('payment', { ...payment, customerId: id, updatedAt: world.tick() })
}

/** The customer with that address, made if there is none; a name fills in only where none is known. */
export function customerByEmail(
  world: World,
  email: string,
  name: string | null,
  country: string | null = null,
): Customer {
  const found = world
    .list('customer', { email: email.toLowerCase() })
    .find(({ deletedAt }) => deletedAt === null)
  return found === undefined ? addCustomer(world, email, name, country) : fillIn(world, found, name, country)
}

function addCustomer(world: World, email: string, name: string | null, country: string | null): Customer {
  const at = world.tick()
  const customer = world.put('customer', {
    ...{ id: world.makeId('cus'), email, name, country, card: 'success', deletedAt: null },
    ...{ communityId: null, messengerId: null, communityUsername: null, messengerUsername: null },
    ...{ createdAt: at, updatedAt: at },
  })
  tellCustomer(world, 'created', customer)
  return customer
}

export function fillIn(
  world: World,
  customer: Customer,
  name: string | null,
  country: string | null,
): Customer {
  const filled = { ...customer, name: customer.name ?? name, country: country ?? customer.country }
  if (filled.name === customer.name && filled.country === customer.country) return customer
  return updateCustomer(world, filled)
}

export function updateCustomer(world: World, changed: Customer): Customer {
  const customer = world.put('customer', { ...changed, updatedAt: world.tick() })
  tellCustomer(world, 'updated', customer)
  return customer
}

/** What follows from where a payment stands now. */
export function followed(world: World, payment: Payment): Payment {
  const subscription = world.find('subscription', payment.subscriptionId)
  if (subscription === undefined) return payment
  if (payment.purpose === 'plan_change') upgradeCharged(world, subscription, payment)
  else if (payment.status === 'COMPLETED') confirmCycle(world, subscription, payment)
  else if (isIncomplete(subscription)) followFirstPayment(world, subscription, payment)
  return world.find('payment', payment.id) ?? payment
}

/** The tokens of test cards; any other is a card that works. */
export function outcomeOfToken(token: string): Outcome {
  const outcomes: Readonly<Record<string, Outcome>> = {
    tok_soft_decline: 'soft_decline',
    tok_hard_decline: 'hard_decline',
    tok_3ds: '3ds_required',
    tok_3ds_failed: '3ds_failed',
    tok_technical_failure: 'technical_failure',
  }
  return outcomes[token] ?? 'success'
}

export function isCardMethod(method: Method): method is (typeof CARD_METHODS)[number] {
  return CARD_METHODS.some((one) => one === method)
}

const onPayment =
  (work: (world: World, payment: Payment) => Payment) =>
  (world: World, id: string): void => {
    const payment = world.find('payment', id)
    if (payment === undefined) return
    const after = work(world, payment)
    if (after !== payment) followed(world, after)
  }

const onSubscription =
  (work: (world: World, subscription: NonNullable<ReturnType<typeof findSubscription>>) => void) =>
  (world: World, id: string): void => {
    const subscription = findSubscription(world, id)
    if (subscription !== undefined) work(world, subscription)
  }
const findSubscription = (world: World, id: string) => world.find('subscription', id)

/** What each kind does once its time has come. */
const DUE: Readonly<Record<DueKind, (world: World, id: string) => void>> = {
  'payment.expire': onPayment(expire),
  'payment.confirm': onPayment((world, payment) =>
    payment.status === 'RECEIVED' ? takeDeposit(world, payment, {}) : payment,
  ),
  'payment.bridge': onPayment(finishBridge),
  'subscription.due': onSubscription(periodEnds),
  'subscription.retry': onSubscription(retryRenewal),
  'subscription.grace': onSubscription(graceEnds),
}

export function fallDue(world: World, { kind, id, at }: Due): void {
  world.unschedule(kind, id)
  world.moveTo(at)
  DUE[kind](world, id)
}
