import { createHash } from 'node:crypto'

/** What a sample is about; null leaves the field out, for the daemon to know already. */
export interface SampleIds {
  readonly customerId: string | null
  readonly productId: string | null
  readonly paymentId: string | null
  readonly subscriptionId: string | null
}

export interface IdOptions {
  readonly customer?: string
  readonly product?: string
  readonly payment?: string
  readonly subscription?: string
}

const TEST_CUSTOMER = 'cus_test'
const TEST_PRODUCT = 'pro_test'

/**
 * Fills in what the options leave open. Payment and subscription follow from customer and product, so
 * that a later `payment.refunded` of the same two is about the same payment. A payment or subscription
 * that is named brings its own customer and product.
 */
export function chooseIds(type: string, options: IdOptions): SampleIds {
  const isKnown = options.payment !== undefined || options.subscription !== undefined
  const customer = options.customer ?? TEST_CUSTOMER
  const product = options.product ?? TEST_PRODUCT
  const subject = subjectOf(type)

  const ownSubscription = subject === 'subscription' ? `sub_${digest(customer, product)}` : null
  // Of a named subscription only a payment event needs a payment: a subscription event may be about none.
  const ownPayment =
    subject === 'payment' || (subject === 'subscription' && options.subscription === undefined)
      ? `pay_${digest(customer, product, options.subscription ?? '')}`
      : null
  return {
    customerId: options.customer ?? (isKnown ? null : customer),
    productId: options.product ?? (isKnown ? null : product),
    paymentId: options.payment ?? ownPayment,
    subscriptionId: options.subscription ?? ownSubscription,
  }
}

/** Of a series, each event is about a payment of its own. */
export function numbered(ids: SampleIds, index: number, count: number): SampleIds {
  if (ids.paymentId === null || count === 1) return ids
  return { ...ids, paymentId: `${ids.paymentId}_${index + 1}` }
}

/** Read off the type's name in either generation. */
function subjectOf(type: string): 'payment' | 'subscription' | 'other' {
  if (/^subscription[._]/i.test(type)) return 'subscription'
  return /^(payment|partial|checkout)(\.|_(?!method))/i.test(type) ? 'payment' : 'other'
}

function digest(...parts: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 12)
}
