import type { SampleSpec } from './sample-event.js'

const PERIOD_MS = 30 * 24 * 60 * 60 * 1000

/** The payment's status after each event, as a v3 body spells it. */
const PAYMENT_STATUS: Readonly<Record<string, string>> = {
  'payment.authorized': 'authorized',
  'payment.succeeded': 'received',
  'payment.completed': 'completed',
  'payment.failed': 'declined',
  'payment.canceled': 'canceled',
  'payment.refunded': 'refunded',
  'payment.partially_refunded': 'partially_refunded',
  'payment.chargeback': 'completed',
  'payment.settled': 'completed',
  'checkout.succeeded': 'authorized',
}

const SUBSCRIPTION_STATUS: Readonly<Record<string, string>> = {
  'subscription.past_due': 'past_due',
  'subscription.canceled': 'canceled',
  'subscription.expired': 'expired',
}

/** The `data` of a v3 event of this type. */
export function sampleV3(type: string, spec: SampleSpec): object {
  if (type.startsWith('subscription.')) return subscription(type, spec)
  if (type.startsWith('customer.')) return { ...customerOf(spec), created_at: isoTime(spec.createdAt) }
  if (type.startsWith('payout.')) return { object: 'payout', id: 'po_sample', status: type.split('.')[1] }
  if (type.startsWith('payment_method.')) {
    return { object: 'payment_method', id: 'pm_sample', customer: customerOf(spec) }
  }
  return payment(type, spec)
}

function payment(type: string, spec: SampleSpec): object {
  const isDecline = type === 'payment.failed' && spec.rail === 'card'
  return {
    object: 'payment',
    id: spec.paymentId,
    status: PAYMENT_STATUS[type],
    method: spec.rail.toUpperCase(),
    ...(isDecline && { decline_code: 'insufficient_funds', decline_category: 'SOFT' }),
    subscription_id: spec.subscriptionId,
    price_cents: '1900',
    currency: 'EUR',
    customer: spec.customerId === null ? null : customerOf(spec),
    product: productOf(spec),
    external_ref: null,
  }
}

function subscription(type: string, spec: SampleSpec): object {
  return {
    object: 'subscription',
    id: spec.subscriptionId,
    status: SUBSCRIPTION_STATUS[type] ?? 'active',
    current_cycle: 1,
    total_cycles: null,
    cancel_at_period_end: false,
    expires_at: isoTime(spec.createdAt + PERIOD_MS),
    organization_id: 'org_sample',
    customer: spec.customerId === null ? null : customerOf(spec),
    product: productOf(spec),
    ...(spec.paymentId !== null && { payment_id: spec.paymentId }),
  }
}

function customerOf({ customerId }: SampleSpec): object {
  return { object: 'customer', id: customerId, email: 'customer@example.com' }
}

function productOf({ productId }: SampleSpec): object | null {
  return productId === null ? null : { object: 'product', id: productId }
}

function isoTime(instant: number): string {
  return new Date(instant).toISOString()
}
