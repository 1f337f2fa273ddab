import { buildSampleEvent, type SampleEvent } from '../../src/provider/sample-event.js'
import { PRODUCT_OF, type SampleCustomer } from './customers.js'
import { withRealisticData } from './realistic-data.js'

export interface PaidCycle {
  /** Tells the cycle's ids from those of the customer's other cycles. */
  readonly name: string
  /** Whether the customer pays for the first time. */
  readonly isFirst: boolean
  /** When it was paid, in epoch milliseconds; its events follow one another by a second. */
  readonly paidAt: number
}

/** One event, and when it happened (epoch milliseconds). */
export interface DatedEvent extends SampleEvent {
  readonly createdAt: number
}

export const MONTH_MS = 30 * 24 * 60 * 60 * 1000
const PAYMENT = ['payment.authorized', 'payment.succeeded'] as const

/** What the provider tells of a payment by card: two events, and a third where it pays for a subscription. */
export function cycleEvents(customer: SampleCustomer, { name, isFirst, paidAt }: PaidCycle): DatedEvent[] {
  const { key, kind } = customer
  const subscribed = isFirst ? 'subscription.created' : 'subscription.renewed'
  const types = kind === 'subscriber' ? [...PAYMENT, subscribed] : PAYMENT
  return types.map((type, step) => {
    const createdAt = paidAt + step * 1000
    const sample = buildSampleEvent({
      type,
      eventId: `evt_${key}_${name}_${step}`,
      createdAt,
      environment: 'live',
      customerId: `cus_${key}`,
      productId: PRODUCT_OF[kind],
      paymentId: `pay_${key}_${name}`,
      subscriptionId: kind === 'subscriber' ? `sub_${key}` : null,
      rail: 'card',
    })
    return { ...withRealisticData(sample, key), createdAt }
  })
}

/** The first `length` events of a customer who keeps paying every month; a buyer pays but once. */
export function historyOf(customer: SampleCustomer, firstPaidAt: number, length: number): DatedEvent[] {
  const events: DatedEvent[] = []
  const cycles = customer.kind === 'buyer' ? 1 : Number.POSITIVE_INFINITY
  for (let cycle = 0; cycle < cycles && events.length < length; cycle += 1) {
    const paidAt = firstPaidAt + cycle * MONTH_MS
    events.push(...cycleEvents(customer, { name: String(cycle), isFirst: cycle === 0, paidAt }))
  }
  return events.slice(0, length)
}
