import type { Generation, PaymentEvent, ProvenRail, SubscriptionEvent } from '../../src/provider/event.js'
import { minute, paymentEvent, subscriptionEvent } from './events.js'

/** How a story reaches us. */
export interface Telling {
  /** Of the source; the payments of a subscription are `<id>_pay_<n>`. */
  readonly id: string
  readonly customerId: string
  readonly rail: ProvenRail
  /** Those that report; both report the same payments under different event ids. */
  readonly generations: readonly Generation[]
  /** What ties a payment to its subscription: each of its events, only its success, the cycle's event, nothing. */
  readonly link: 'always' | 'late' | 'by_cycle' | 'never'
  /** How many of the first events do not name the customer. */
  readonly nameless: number
}

/** What a subscription event shows, beside its type. */
export interface Shown {
  readonly productId: string
  readonly paymentId: string | null
  readonly cycles: SubscriptionEvent['cycles']
  readonly cancelAtPeriodEnd?: boolean
  readonly expiresAt: number
}

const V2_HAS_NO_WORD_FOR: readonly string[] = [
  'payment.authorized',
  'payment.completed',
  'payment.canceled',
  'payment.settled',
  'subscription.updated',
  'subscription.canceled',
]

const CRYPTO_HAS_NO: readonly string[] = [
  'payment.authorized',
  'payment.canceled',
  'payment.settled',
  'payment.chargeback',
]

/** Writes happenings down as the events that each generation sends of them. Times are minutes of the story. */
export function createReporter(telling: Telling) {
  const events: (PaymentEvent | SubscriptionEvent)[] = []

  const generationsFor = (type: string) =>
    telling.generations.filter((generation) => generation === 'v3' || !V2_HAS_NO_WORD_FOR.includes(type))
  const customerId = () => (events.length < telling.nameless ? null : telling.customerId)

  return {
    events,
    /** An event of a payment, one of `subscriptionId` unless that is null. */
    payment(
      at: number,
      type: PaymentEvent['type'],
      paymentId: string,
      productId: string,
      subscriptionId: string | null,
    ): void {
      const tells = telling.link === 'always' || (telling.link === 'late' && type === 'payment.succeeded')
      if (telling.rail === 'crypto' && CRYPTO_HAS_NO.includes(type)) return
      for (const generation of generationsFor(type)) {
        events.push(
          paymentEvent({
            type,
            generation,
            paymentId,
            productId,
            createdAt: minute(at),
            customerId: customerId(),
            rail: telling.rail,
            subscriptionId: tells ? subscriptionId : null,
          }),
        )
      }
    },
    /** An event of the subscription that the story is about. The legacy generation shows no cycles. */
    subscription(at: number, type: SubscriptionEvent['type'], shown: Shown): void {
      for (const generation of generationsFor(type)) {
        events.push(
          subscriptionEvent({
            ...shown,
            type,
            generation,
            subscriptionId: telling.id,
            createdAt: minute(at),
            customerId: customerId(),
            paymentId: telling.link === 'by_cycle' ? shown.paymentId : null,
            cycles: generation === 'v2' ? null : shown.cycles,
          }),
        )
      }
    },
  }
}
