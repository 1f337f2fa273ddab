import { signBody } from '../../src/provider/signature.js'
import type { DatedEvent } from './cycles.js'
import { SECRET } from './signing.js'

interface Told {
  readonly id: string
  readonly data: {
    readonly object: 'payment' | 'subscription'
    readonly id: string
    readonly customer: { readonly id: string }
  }
}

const TYPES: Readonly<Record<string, string>> = {
  'payment.authorized': 'payment_intent.amount_capturable_updated',
  'payment.succeeded': 'payment_intent.succeeded',
  'subscription.created': 'customer.subscription.created',
  'subscription.renewed': 'customer.subscription.updated',
}

const MONTH_SECONDS = 30 * 24 * 60 * 60

/**
 * What Stripe would tell of the same, signed at an instant (epoch milliseconds): an event of about the same size, with
 * the fields that a copy of it keeps. Both services sign the same way.
 */
export function toldByStripe(told: DatedEvent, signedAt: number) {
  const body = bodyOf(told)
  const timestamp = String(Math.floor(signedAt / 1000))
  return { body, signature: `t=${timestamp},${signBody(SECRET, timestamp, body)}` }
}

function bodyOf({ body, event, createdAt }: DatedEvent): Buffer {
  const { id, data } = JSON.parse(body) as Told
  const created = Math.floor(createdAt / 1000)
  const common = { id: data.id, customer: data.customer.id, livemode: true, created, metadata: {} }
  const object =
    data.object === 'payment' ? paymentIntent(common, event) : subscription(common, data.id, created)
  const type = TYPES[event]
  if (type === undefined) throw new Error(`Stripe has no ${event}.`)
  return Buffer.from(JSON.stringify({ id, object: 'event', type, created, livemode: true, data: { object } }))
}

function paymentIntent(common: object, event: string): object {
  const isPaid = event === 'payment.succeeded'
  return {
    ...common,
    object: 'payment_intent',
    status: isPaid ? 'succeeded' : 'requires_capture',
    amount: 1900,
    amount_capturable: isPaid ? 0 : 1900,
    amount_received: isPaid ? 1900 : 0,
    amount_details: { tip: {} },
    currency: 'eur',
    description:
      'Everything in the archive, the weekly letter on the day it is written, and the members’ rooms.',
    capture_method: 'automatic',
    confirmation_method: 'automatic',
    client_secret: 'pi_0123456789abcdef01234567_secret_0123456789abcdef012345678',
    payment_method: 'pm_0123456789abcdef01234567',
    payment_method_options: {
      card: { installments: null, network: null, request_three_d_secure: 'automatic' },
    },
    payment_method_types: ['card'],
    statement_descriptor: 'MEMBERSHIP',
    statement_descriptor_suffix: null,
    setup_future_usage: 'off_session',
    canceled_at: null,
    last_payment_error: null,
    next_action: null,
    shipping: null,
    transfer_data: null,
  }
}

function subscription(common: object, id: string, created: number): object {
  const period = { current_period_start: created, current_period_end: created + MONTH_SECONDS }
  const price = {
    id: 'price_gold',
    object: 'price',
    product: 'prod_gold',
    unit_amount: 1900,
    currency: 'eur',
    recurring: { interval: 'month', interval_count: 1 },
  }
  const item = { id: `si_${id}`, object: 'subscription_item', created, metadata: {}, quantity: 1, price }
  return {
    ...common,
    object: 'subscription',
    status: 'active',
    ...period,
    start_date: created,
    billing_cycle_anchor: created,
    cancel_at_period_end: false,
    collection_method: 'charge_automatically',
    default_payment_method: 'pm_0123456789abcdef01234567',
    latest_invoice: 'in_0123456789abcdef01234567',
    items: {
      object: 'list',
      data: [{ ...item, ...period, subscription: id, tax_rates: [] }],
      has_more: false,
      url: `/v1/subscription_items?subscription=${id}`,
    },
    cancel_at: null,
    canceled_at: null,
    ended_at: null,
    trial_end: null,
    trial_start: null,
  }
}
