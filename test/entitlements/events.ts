import type {
  CustomerDetails,
  CustomerEvent,
  Generation,
  ManualEvent,
  NormalizedEvent,
  PaymentEvent,
  ProvenRail,
  RailProof,
  SubscriptionEvent,
} from '../../src/provider/event.js'

/** Minute 0 of every example. */
export const START = Date.UTC(2026, 0, 1)

/** The instant `count` minutes after the start of the example, in epoch milliseconds. */
export function minute(count: number): number {
  return START + count * 60_000
}

const UNKNOWN_PERSON: CustomerDetails = {
  email: null,
  name: null,
  communityId: null,
  communityUsername: null,
  messengerId: null,
  messengerUsername: null,
}

/** The types that prove a card by themselves, in the generation that sends them. */
const TYPES_PROVING_CARD: Readonly<Record<Generation, readonly PaymentEvent['type'][]>> = {
  v3: ['payment.authorized', 'payment.canceled', 'payment.settled'],
  v2: [
    'checkout.succeeded',
    'checkout.failed',
    'payment.partially_refunded',
    'payment.refunded',
    'payment.chargeback',
  ],
}

interface PaymentFields extends Partial<Omit<PaymentEvent, 'subject'>> {
  /** What the event's method field says; left out, only its type can prove a rail. */
  readonly rail?: ProvenRail
}

interface CustomerFields extends Partial<Omit<CustomerEvent, 'subject' | 'type'>> {
  readonly type: CustomerEvent['type']
}

/** The success of `pay_1` of `cus_1` for `pro_a`, of no subscription, unless the fields tell otherwise. */
export function paymentEvent({ rail, ...told }: PaymentFields = {}): PaymentEvent {
  const fields = { type: 'payment.succeeded', paymentId: 'pay_1', ...told } as const
  const facts = factsOf(fields, fields.paymentId)
  const railProof = proofOf(fields.type, facts.generation, rail)
  return { ...facts, subject: 'payment', subscriptionId: null, railProof, ...fields }
}

/** The start of `sub_1` of `cus_1` on `pro_a`, showing nothing else, unless the fields tell otherwise. */
export function subscriptionEvent(told: Partial<Omit<SubscriptionEvent, 'subject'>> = {}): SubscriptionEvent {
  const fields = { type: 'subscription.created', ...told } as const
  const { subscriptionId = 'sub_1' } = fields
  return {
    ...factsOf(fields, subscriptionId),
    subject: 'subscription',
    paymentId: null,
    status: null,
    cycles: null,
    cancelAtPeriodEnd: null,
    expiresAt: null,
    ...fields,
    subscriptionId,
  }
}

/** An event about `cus_1` as a person, unless the fields tell otherwise. */
export function customerEvent(fields: CustomerFields): CustomerEvent {
  const { customerId = 'cus_1' } = fields
  return { ...factsOf(fields, customerId), subject: 'customer', productId: null, ...fields, customerId }
}

/** What was done by hand to `cus_1` about `pro_a`, at a minute of the example. */
export function byHand(
  type: ManualEvent['type'],
  at: number,
  fields: Partial<Pick<ManualEvent, 'productId' | 'until' | 'id'>> = {},
): ManualEvent {
  const facts = { ...factsOf({ createdAt: minute(at) }, null), id: `man_${type}_${at}`, generation: null }
  return { ...facts, subject: 'manual', type, until: null, actor: 'ada', reason: null, ...fields }
}

/* Short forms for stories: what happened at a minute of the example, under a short event id. */

/** Of a payment by card of `sub_1`. */
export function pay(
  id: string,
  type: PaymentEvent['type'],
  paymentId: string | null,
  at: number,
  fields: Partial<PaymentEvent> = {},
): PaymentEvent {
  const createdAt = minute(at)
  return paymentEvent({ id, type, paymentId, createdAt, rail: 'card', subscriptionId: 'sub_1', ...fields })
}

/** Of `sub_1` itself. */
export function sub(
  id: string,
  type: SubscriptionEvent['type'],
  at: number,
  fields: Partial<SubscriptionEvent> = {},
): SubscriptionEvent {
  return subscriptionEvent({ id, type, createdAt: minute(at), ...fields })
}

/** Of the one-time payment `pay_1`, by card. */
export function once(
  id: string,
  type: PaymentEvent['type'],
  at: number,
  fields: Partial<PaymentEvent> = {},
): PaymentEvent {
  return pay(id, type, 'pay_1', at, { subscriptionId: null, ...fields })
}

/** The facts that every event carries. The id tells what happened to `about`, and when: one happening, one id. */
function factsOf(fields: Partial<NormalizedEvent>, about: string | null) {
  const { createdAt = START, generation = 'v3' } = fields
  return {
    id: `evt_${generation}_${fields.type}_${about}_${createdAt}`,
    generation,
    createdAt,
    apiVersion: null,
    customerId: 'cus_1',
    productId: 'pro_a',
    customer: UNKNOWN_PERSON,
    externalRef: null,
    metadata: {},
  }
}

function proofOf(
  type: PaymentEvent['type'],
  generation: Generation | null,
  rail: ProvenRail | undefined,
): RailProof | null {
  if (rail !== undefined) return { rail, strength: 3 }
  if (generation === null) return null
  return TYPES_PROVING_CARD[generation].includes(type) ? { rail: 'card', strength: 2 } : null
}
