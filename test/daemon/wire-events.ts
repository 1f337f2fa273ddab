import type { Rail } from '../../src/provider/event.js'
import { NOW } from './running-daemon.js'

export const CUSTOMER = 'cus_1'
export const PRODUCT = 'pro_gold'
export const PAYMENT = 'pay_1'
export const SUBSCRIPTION = 'sub_1'

/** What an event tells; null: it does not. `minutes`: when it happened, counted from an hour before now. */
export interface Told {
  readonly id?: string
  readonly minutes?: number
  readonly customer?: string | null
  readonly product?: string | null
  readonly payment?: string | null
  readonly subscription?: string | null
  readonly rail?: Rail
  /** Fields of `data` (v3), or of its subject (v2), beyond these. */
  readonly more?: Readonly<Record<string, unknown>>
}

const HOUR_MS = 3_600_000

export function timeOf(minutes: number): string {
  return new Date(NOW - HOUR_MS + minutes * 60_000).toISOString()
}

let lastId = 0

/** An event as the generation that has this type sends it: a one-time payment, unless it names a subscription. */
export function wireEvent(type: string, told: Told = {}): string {
  lastId += 1
  const { id = `evt_${lastId}`, minutes = 0 } = told
  const data = type === type.toUpperCase() ? dataOfV2(type, told) : dataOfV3(type, told)
  return JSON.stringify({ id, type, createdAt: timeOf(minutes), data })
}

function idsOf({ customer = CUSTOMER, product = PRODUCT, payment = PAYMENT, subscription = null }: Told) {
  return { customer, product, payment, subscription }
}

function dataOfV3(type: string, told: Told): object {
  const { customer, product, payment, subscription } = idsOf(told)
  const about = type.startsWith('subscription.')
    ? { object: 'subscription', id: subscription }
    : {
        object: 'payment',
        payment_id: payment,
        subscription_id: subscription,
        ...V3_RAIL[told.rail ?? 'card'],
      }
  return {
    ...about,
    customer: customer && { object: 'customer', id: customer },
    product: product && { object: 'product', id: product },
    ...told.more,
  }
}

const V3_RAIL: Readonly<Record<Rail, object>> = {
  card: { method: 'CARD' },
  crypto: { asset: { symbol: 'USDC', chainId: 8453 } },
  unknown: {},
}

function dataOfV2(type: string, told: Told): object {
  const { customer, product, payment, subscription } = idsOf(told)
  if (type.startsWith('SUBSCRIPTION_')) {
    return {
      subscription: { id: subscription, productId: product, ...told.more },
      lastPayment: null,
      customer: { id: customer },
    }
  }
  const source = { card: 'FIAT', crypto: 'CRYPTO', unknown: null }[told.rail ?? 'card']
  const ids = { id: payment, subscriptionId: subscription, productId: product, customerId: customer }
  return { payment: { ...ids, source, ...told.more }, context: { externalRef: null, metadata: null } }
}
