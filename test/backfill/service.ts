import type { NormalizedEvent } from '../../src/provider/event.js'
import type { JsonObject } from '../../src/provider/json.js'
import { normalise } from '../../src/provider/normalise.js'
import { iso } from './records.js'

/*
 * A payments service for one customer, made up from a seed: what it has on record of a subscription and of one-time
 * payments, and every webhook that it sent of them, in one generation or both.
 */

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const START = Date.UTC(2026, 0, 1)
const PERIOD = 30 * DAY
const PLANS = ['pro_a', 'pro_b', 'pro_c'] as const

/** Numbers that a seed decides; the next one at each call. */
export interface Chance {
  /** From 0 to below 1. */
  next(): number
  /** Whether something of this probability happens. */
  hits(probability: number): boolean
  between(least: number, most: number): number
  pick<Value>(values: readonly [Value, ...Value[]]): Value
}

export function chanceOf(seed: number): Chance {
  let state = ((Math.abs(seed) % 2_147_483_646) + 1) | 0
  const next = () => {
    state = (state * 48_271) % 2_147_483_647
    return state / 2_147_483_647
  }
  // Seeds close to each other begin alike.
  for (let i = 0; i < 8; i += 1) next()
  return {
    next,
    hits: (probability) => next() < probability,
    between: (least, most) => Math.floor(least + next() * (most - least)),
    pick: (values) => values[Math.floor(next() * values.length)] ?? values[0],
  }
}

export interface Webhook {
  readonly generation: 'v3' | 'v2'
  readonly event: NormalizedEvent
}

interface Payment {
  readonly id: string
  readonly ofSubscription: boolean
  readonly productId: string | null
  readonly createdAt: number
  readonly hasHistory: boolean
  readonly timeline: { status: string; at: number }[]
  updatedAt: number
  paidAt: number | null
  refundedAt: number | null
  declineCategory: string | null
  isChargedBack: boolean
}

interface Subscription {
  readonly id: string
  readonly createdAt: number
  readonly totalCycles: number | null
  status: 'INCOMPLETE' | 'ACTIVE' | 'PAST_DUE' | 'CANCELED' | 'EXPIRED'
  productId: string
  currentCycle: number
  due: number
  isFlagged: boolean
  updatedAt: number
}

/** Names of types in the legacy generation; what is missing there is not sent. */
const V2_NAMES: Readonly<Record<string, string>> = {
  'payment.authorized': 'CHECKOUT_SUCCESS',
  'payment.succeeded': 'PAYMENT_SUCCESS',
  'payment.failed': 'PAYMENT_FAILED',
  'payment.partially_refunded': 'PARTIAL_REFUNDED',
  'payment.refunded': 'PAYMENT_REFUNDED',
  'payment.chargeback': 'PAYMENT_CHARGEBACK',
  'subscription.created': 'SUBSCRIPTION_CREATED',
  'subscription.renewed': 'SUBSCRIPTION_RENEWED',
  'subscription.past_due': 'SUBSCRIPTION_PAST_DUE',
  'subscription.expired': 'SUBSCRIPTION_EXPIRED',
}

/** What differs between services that the documents leave possible. */
function traitsOf(chance: Chance) {
  return {
    rail: chance.pick(['card', 'card', 'crypto'] as const),
    sends: chance.pick([['v3'], ['v3'], ['v3', 'v2'], ['v2']] as const),
    captureAfter: chance.pick([2_000, 3 * HOUR, 2 * DAY]),
    renewsByAuthorization: chance.hits(0.5),
    namesMethod: chance.hits(0.5),
    eventsNamePayment: chance.hits(0.3),
    withoutHistory: chance.pick([0, 0, 0.5]),
    dueIsNullAtEnd: chance.hits(0.3),
    chargeNames: chance.pick(['new', 'new', 'old', 'none'] as const),
    upgradeBeginsAnew: chance.hits(0.3),
    lag: chance.pick([0, 3_000]),
  }
}

/** The whole life, up to a reading. */
export interface Life {
  readonly now: number
  readonly webhooks: readonly Webhook[]
  /** The same in the newer generation, which says everything. */
  readonly truth: readonly NormalizedEvent[]
  readonly payments: readonly { readonly json: JsonObject; readonly isChargedBack: boolean }[]
  readonly subscriptions: readonly JsonObject[]
}

export function liveThrough(chance: Chance): Life {
  const traits = traitsOf(chance)
  const webhooks: Webhook[] = []
  const payments: Payment[] = []
  let now = START
  let serial = 0
  const subscription: Subscription = {
    ...{ id: 'sub_1', createdAt: now, totalCycles: chance.hits(0.15) ? chance.between(1, 4) : null },
    ...{ status: 'INCOMPLETE', productId: chance.pick(PLANS), currentCycle: 0, due: now },
    ...{ isFlagged: false, updatedAt: now },
  }
  /** The plan from the next renewal on. */
  let scheduled: string | null = null

  function send(type: string, v3: JsonObject, v2: JsonObject): void {
    for (const generation of ['v3', 'v2'] as const) {
      const name = generation === 'v3' ? type : V2_NAMES[type]
      if (name === undefined) continue
      const createdAt = now + Math.floor(chance.next() * traits.lag)
      const data = generation === 'v3' ? v3 : v2
      const json = { id: `evt_${serial++}`, type: name, createdAt: iso(createdAt), data }
      const read = normalise(Buffer.from(JSON.stringify(json)), {
        environment: 'live',
        receivedAt: createdAt,
      })
      if (!read.ok) throw new Error(`a webhook that can't be read: ${read.reason}`)
      webhooks.push({ generation, event: read.event })
    }
  }

  function sendPayment(type: string, payment: Payment): void {
    const { id, productId, ofSubscription, declineCategory } = payment
    const subscriptionId = ofSubscription ? subscription.id : null
    const isCard = traits.rail === 'card'
    const shown = traits.namesMethod ? { method: isCard ? 'CARD' : 'CRYPTO' } : {}
    send(
      type,
      {
        ...{
          object: 'payment',
          id,
          customer: { id: 'cus_1' },
          product: productId,
          subscription: subscriptionId,
        },
        ...{ asset: isCard ? null : { symbol: 'USDC' }, declineCategory, ...shown },
      },
      {
        payment: { id, customerId: 'cus_1', productId, subscriptionId, source: isCard ? 'FIAT' : 'CRYPTO' },
      },
    )
  }

  function sendSubscription(type: string, paidBy: Payment | null = null): void {
    const { id, status, productId, currentCycle, totalCycles, isFlagged, due } = subscription
    send(
      type,
      {
        ...{
          object: 'subscription',
          id,
          status: status.toLowerCase(),
          customer: 'cus_1',
          product: productId,
        },
        ...{ current_cycle: currentCycle, total_cycles: totalCycles, cancel_at_period_end: isFlagged },
        ...{ expires_at: iso(due), payment: traits.eventsNamePayment && paidBy ? paidBy.id : null },
      },
      {
        subscription: { id, status, productId, expiresAt: iso(due) },
        customer: { id: 'cus_1' },
        lastPayment: paidBy && { id: paidBy.id },
      },
    )
  }

  const statusOf = ({ timeline }: Payment) => timeline.at(-1)?.status ?? 'PENDING'

  function become(payment: Payment, status: string, type: string): void {
    payment.timeline.push({ status, at: now })
    payment.updatedAt = now
    sendPayment(type, payment)
  }

  function newPayment(productId: string | null, ofSubscription: boolean): Payment {
    const payment: Payment = {
      ...{ id: `pay_${payments.length + 1}`, ofSubscription, productId, createdAt: now, timeline: [] },
      ...{ hasHistory: !chance.hits(traits.withoutHistory), updatedAt: now, paidAt: null, refundedAt: null },
      ...{ declineCategory: null, isChargedBack: false },
    }
    payment.timeline.push({ status: 'PENDING', at: now })
    payments.push(payment)
    now += chance.between(MINUTE / 2, 20 * MINUTE)
    return payment
  }

  function succeed(payment: Payment): void {
    payment.paidAt = now
    become(payment, 'COMPLETED', 'payment.succeeded')
  }

  function decline(payment: Payment): void {
    payment.declineCategory = traits.rail === 'card' ? 'SOFT' : null
    become(payment, chance.pick(['DECLINED', 'FAILED']), 'payment.failed')
  }

  /** Pays, and calls back at once: a card's money comes later. */
  function pay(
    payment: Payment,
    isAuthorized: boolean,
    paid: () => void,
    captureAfter = traits.captureAfter,
  ) {
    if (traits.rail === 'crypto' || !isAuthorized) {
      succeed(payment)
      paid()
      return
    }
    become(payment, 'AUTHORIZED', 'payment.authorized')
    paid()
    now += captureAfter
    succeed(payment)
  }

  const refundable = () =>
    payments.filter((one) => /^(COMPLETED|PARTIALLY_REFUNDED)$/.test(statusOf(one)) && !one.isChargedBack)

  function giveBack(payment: Payment): void {
    if (traits.rail === 'crypto') return
    if (chance.hits(0.2)) {
      payment.isChargedBack = true
      payment.updatedAt = now
      sendPayment('payment.chargeback', payment)
      return
    }
    payment.refundedAt = now
    const isFull = chance.hits(0.7)
    become(
      payment,
      isFull ? 'REFUNDED' : 'PARTIALLY_REFUNDED',
      isFull ? 'payment.refunded' : 'payment.partially_refunded',
    )
  }

  function beginCycle(type: 'subscription.created' | 'subscription.renewed', paidBy: Payment): void {
    subscription.currentCycle += 1
    subscription.due = Math.max(subscription.due, now - 2 * DAY) + PERIOD
    subscription.status = 'ACTIVE'
    subscription.updatedAt = now
    const isDowngrade = scheduled !== null && scheduled !== subscription.productId
    subscription.productId = scheduled ?? subscription.productId
    scheduled = null
    sendSubscription(type, paidBy)
    if (isDowngrade) sendSubscription('subscription.updated')
  }

  /** False: the subscription does not go on. */
  function end(status: 'CANCELED' | 'EXPIRED'): false {
    subscription.status = status
    subscription.updatedAt = now
    sendSubscription(status === 'CANCELED' ? 'subscription.canceled' : 'subscription.expired')
    return false
  }

  function upgrade(): void {
    const productId = chance.pick(PLANS)
    if (productId === subscription.productId) return
    const swap = (paidBy: Payment | null) => {
      subscription.productId = productId
      subscription.updatedAt = now
      scheduled = null
      if (traits.upgradeBeginsAnew) subscription.due = now + 12 * PERIOD
      sendSubscription('subscription.updated', paidBy)
    }
    if (traits.rail === 'crypto' || chance.hits(0.2)) {
      swap(null)
      return
    }
    const names = { new: productId, old: subscription.productId, none: null }[traits.chargeNames]
    const charge = newPayment(names, true)
    if (chance.hits(0.15)) {
      decline(charge)
      return
    }
    // The customer is there: the money is taken at once.
    pay(charge, true, () => {}, 1_000)
    swap(charge)
    if (!chance.hits(0.4)) return
    now += chance.between(HOUR, 3 * DAY)
    giveBack(charge)
  }

  /** What happens within a cycle; true: it has ended the subscription. */
  function passTime(): boolean {
    for (let acts = chance.between(0, 4); acts > 0; acts -= 1) {
      now += chance.between(HOUR, 6 * DAY)
      if (now > subscription.due - 5 * DAY) break
      const act = chance.pick([
        'refund',
        'refund',
        'upgrade',
        'upgrade',
        'downgrade',
        'flag',
        'cancel',
        'none',
      ])
      if (act === 'upgrade' && !subscription.isFlagged) upgrade()
      if (act === 'downgrade') scheduled = chance.pick(PLANS)
      if (act === 'flag') {
        subscription.isFlagged = !subscription.isFlagged
        subscription.updatedAt = now
      }
      if (act === 'refund') {
        const [first, ...others] = refundable()
        if (first !== undefined && chance.hits(0.6)) giveBack(chance.pick([first, ...others]))
      }
      if (act === 'cancel' && chance.hits(0.5)) {
        end('CANCELED')
        return true
      }
    }
    return chance.hits(0.15)
  }

  /** At the end of a cycle; true: the subscription goes on. */
  function renew(): boolean {
    now = Math.max(now, subscription.due)
    if (subscription.isFlagged) return end('CANCELED')
    if (subscription.totalCycles !== null && subscription.currentCycle >= subscription.totalCycles) {
      return end('EXPIRED')
    }
    const renewal = () => newPayment(scheduled ?? subscription.productId, true)
    if (chance.hits(0.3)) {
      if (traits.rail === 'card') decline(renewal())
      subscription.status = 'PAST_DUE'
      subscription.updatedAt = now
      sendSubscription('subscription.past_due')
      for (let tries = chance.between(0, 3); tries > 0; tries -= 1) {
        now += chance.between(DAY, 5 * DAY)
        if (traits.rail === 'card') decline(renewal())
      }
      now += chance.between(DAY, 6 * DAY)
      if (chance.hits(0.2)) return false
      if (chance.hits(0.4)) return end('EXPIRED')
    }
    const payment = renewal()
    pay(payment, traits.renewsByAuthorization, () => beginCycle('subscription.renewed', payment))
    return true
  }

  function subscribe(): void {
    const payment = newPayment(subscription.productId, true)
    if (chance.hits(0.05)) {
      decline(payment)
      return
    }
    pay(payment, true, () => beginCycle('subscription.created', payment))
    for (let cycles = chance.between(0, 6); cycles > 0; cycles -= 1) {
      if (passTime() || !renew()) return
    }
  }

  function buyOnce(): void {
    const payment = newPayment(chance.pick(PLANS), false)
    if (traits.rail === 'card' && chance.hits(0.25)) {
      decline(payment)
      if (chance.hits(0.4)) return
      now += chance.between(MINUTE, 40 * MINUTE)
    }
    if (traits.rail === 'card' && chance.hits(0.15)) {
      become(payment, 'AUTHORIZED', 'payment.authorized')
      now += chance.between(HOUR, 3 * DAY)
      become(payment, 'CANCELED', 'payment.canceled')
      return
    }
    pay(payment, true, () => {})
    now += chance.between(HOUR, 20 * DAY)
    if (chance.hits(0.3)) giveBack(payment)
  }

  const kinds = chance.pick([['subscription'], ['subscription'], ['once', 'subscription'], ['once', 'once']])
  for (const kind of kinds) kind === 'once' ? buyOnce() : subscribe()
  now += chance.between(DAY, 40 * DAY)

  return {
    now,
    webhooks: webhooks.filter(({ generation }) => traits.sends.some((one) => one === generation)),
    truth: webhooks.filter(({ generation }) => generation === 'v3').map(({ event }) => event),
    payments: payments.map((payment) => ({
      json: paymentJson(payment),
      isChargedBack: payment.isChargedBack,
    })),
    subscriptions: kinds.includes('subscription') ? [subscriptionJson()] : [],
  }

  function paymentJson(payment: Payment): JsonObject {
    const { id, productId, ofSubscription, timeline, paidAt, refundedAt } = payment
    return {
      ...{ id, productId, customerId: 'cus_1', subscriptionId: ofSubscription ? subscription.id : null },
      ...{ status: statusOf(payment), declineCategory: payment.declineCategory, declineCode: null },
      asset: traits.rail === 'card' ? null : { symbol: 'USDC' },
      paymentReceivedAt: paidAt && iso(paidAt),
      refundedAt: refundedAt && iso(refundedAt),
      ...{ createdAt: iso(payment.createdAt), updatedAt: iso(payment.updatedAt) },
      statusTimeline: payment.hasHistory ? timeline.map(({ status, at }) => ({ status, at: iso(at) })) : [],
    }
  }

  function subscriptionJson(): JsonObject {
    const { id, status, productId, currentCycle, totalCycles, isFlagged, due } = subscription
    const isLast = totalCycles !== null && currentCycle >= totalCycles
    const isOver = status === 'CANCELED' || status === 'EXPIRED' || isLast
    return {
      ...{ id, customerId: 'cus_1', productId, status, currentCycle, totalCycles },
      ...{ cancelAtPeriodEnd: isFlagged, createdAt: iso(subscription.createdAt) },
      currentCycleDueAt: traits.dueIsNullAtEnd && isOver ? null : iso(due),
      updatedAt: iso(subscription.updatedAt),
    }
  }
}
