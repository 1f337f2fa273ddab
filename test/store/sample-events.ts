import { createHash } from 'node:crypto'
import type { PaymentEvent, SubscriptionEvent } from '../../src/provider/event.js'
import type { NewEvent } from '../../src/store/events.js'

export const NOON = Date.parse('2026-03-01T12:00:00Z')

const NOTHING_TOLD = {
  generation: 'v3',
  createdAt: NOON,
  apiVersion: null,
  customerId: 'cus_1',
  productId: 'pro_1',
  customer: {
    email: null,
    name: null,
    communityId: null,
    communityUsername: null,
    messengerId: null,
    messengerUsername: null,
  },
  externalRef: null,
  metadata: {},
} as const

export function paymentEvent(told: Partial<PaymentEvent> = {}): PaymentEvent {
  return {
    ...NOTHING_TOLD,
    subject: 'payment',
    type: 'payment.succeeded',
    id: 'evt_1',
    paymentId: 'pay_1',
    subscriptionId: null,
    railProof: null,
    ...told,
  }
}

export function subscriptionEvent(told: Partial<SubscriptionEvent> = {}): SubscriptionEvent {
  return {
    ...NOTHING_TOLD,
    subject: 'subscription',
    type: 'subscription.created',
    id: 'evt_2',
    subscriptionId: 'sub_1',
    paymentId: null,
    status: 'active',
    cycles: null,
    cancelAtPeriodEnd: null,
    expiresAt: null,
    ...told,
  }
}

/** An event as it is stored: about the payment or subscription that it names. */
export function newEvent(
  event: PaymentEvent | SubscriptionEvent,
  { body = JSON.stringify(event), ...told }: Partial<Omit<NewEvent, 'body'>> & { body?: string } = {},
): NewEvent {
  const id = event.subject === 'payment' ? event.paymentId : event.subscriptionId
  return {
    environment: 'live',
    eventId: event.id,
    endpoint: 'v3',
    receivedAt: NOON + 1_000,
    headers: { event: event.type, timestamp: '1772366400', signature: 'v1=00' },
    body: Buffer.from(body),
    bodySha256: createHash('sha256').update(body).digest('hex'),
    disposition: 'applied',
    reason: null,
    event,
    source: id === null ? null : { kind: event.subject, id },
    ...told,
  }
}
