import type { SampleEvent } from '../../src/provider/sample-event.js'

/** What real products come with: fields that nothing reads, and every body carries. About 1.1 kB in all. */
const PRODUCT_DETAILS = {
  description:
    'Everything in the archive, the weekly letter on the day it is written, and the members’ rooms.',
  image_url: 'https://images.example.com/products/membership/cover-1200x630.png',
  payment_methods: ['CARD', 'CRYPTO'],
  price_cents: '1900',
  currency: 'EUR',
  interval: 'MONTH',
  tax_inclusive: true,
  vat_rate_bps: 1900,
  success_url: 'https://shop.example.com/thank-you?session={CHECKOUT_SESSION_ID}',
  cancel_url: 'https://shop.example.com/membership',
}

interface SampleBody {
  readonly data: { readonly customer: object; readonly product: object }
}

/** Fills in what a sample leaves bare: the person's own address, the merchant's reference, the product's details. */
export function withRealisticData({ body, event }: SampleEvent, key: string): SampleEvent {
  const { data, ...envelope } = JSON.parse(body) as SampleBody
  const filled = {
    ...envelope,
    data: {
      ...data,
      customer: { ...data.customer, email: `${key}@example.com` },
      product: { ...data.product, ...PRODUCT_DETAILS },
      external_ref: `user_${key}`,
    },
  }
  return { body: JSON.stringify(filled), event }
}
