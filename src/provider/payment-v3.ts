import { customerOf, flatPersonFields, flatPersonOf, person } from './customer.js'
import type { Envelope } from './envelope.js'
import type { PaymentEvent } from './event.js'
import type { PaymentEventType } from './event-types.js'
import { anything, eitherCasing, id, text } from './fields.js'
import { shownId } from './ids.js'
import { isJsonObject } from './json.js'
import { readMetadata } from './metadata.js'
import { proveRail, railFields } from './rail.js'

/** Payments and hosted checkouts alike: a checkout may hold its payment as an object with these same fields. */
const v3Payment = eitherCasing({
  id,
  payment: anything,
  paymentId: id,
  subscription: id,
  subscriptionId: id,
  product: id,
  productId: id,
  customer: person,
  ...flatPersonFields,
  ...railFields,
  externalRef: text,
  metadata: anything,
})
type V3Payment = ReturnType<typeof v3Payment>

const NOTHING_SHOWN = v3Payment({})

/** A v3 payment or checkout event. What its data does not show itself, the payment within may. */
export function paymentEventV3(envelope: Envelope, type: PaymentEventType): PaymentEvent {
  const data = v3Payment(envelope.data)
  const inner = isJsonObject(data.payment) ? v3Payment(data.payment) : NOTHING_SHOWN
  const { customerId, customer } = customerOf([
    data.customer,
    flatPersonOf(data),
    inner.customer,
    flatPersonOf(inner),
  ])
  const { id, generation, createdAt, apiVersion } = envelope
  return {
    id,
    generation,
    createdAt,
    apiVersion,
    subject: 'payment',
    type,
    paymentId: ownPaymentId(type, data) ?? shownId(data.payment) ?? data.paymentId,
    subscriptionId: subscriptionOf(data) ?? subscriptionOf(inner),
    productId: productOf(data) ?? productOf(inner),
    customerId,
    customer,
    railProof: proveRail(envelope.type, [data, inner]),
    externalRef: data.externalRef ?? inner.externalRef ?? null,
    metadata: readMetadata(data.metadata ?? inner.metadata),
  }
}

/** A checkout's `id` may be its session's: only the prefix tells whether it is the payment's. */
function ownPaymentId(type: PaymentEventType, { id }: V3Payment): string | null {
  return type.startsWith('checkout.') && !id?.startsWith('pay_') ? null : id
}

function subscriptionOf({ subscription, subscriptionId }: V3Payment): string | null {
  return subscription ?? subscriptionId
}

function productOf({ product, productId }: V3Payment): string | null {
  return product ?? productId
}
