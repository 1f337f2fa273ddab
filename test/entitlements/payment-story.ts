import type { PaymentEvent, SubscriptionEvent } from '../../src/provider/event.js'
import { createReporter, type Telling } from './story-reporter.js'

/** What happens to one payment, step by step. */
export const PAYMENT_PLOTS = {
  paid: [
    'checkout.initiated',
    'payment.authorized',
    'checkout.succeeded',
    'payment.succeeded',
    'payment.settled',
  ],
  completed: ['checkout.succeeded', 'payment.succeeded', 'payment.completed'],
  confirmed_only: ['payment.succeeded'],
  declined: ['checkout.initiated', 'checkout.failed', 'payment.failed'],
  declined_then_paid: ['payment.failed', 'payment.authorized', 'checkout.succeeded', 'payment.succeeded'],
  failed_after_authorization: ['payment.authorized', 'checkout.succeeded', 'payment.failed'],
  retried_after_authorization: [
    'payment.authorized',
    'payment.failed',
    'payment.authorized',
    'payment.succeeded',
  ],
  voided: ['payment.authorized', 'payment.canceled'],
  abandoned: ['checkout.initiated', 'checkout.canceled'],
  canceled_after_checkout: ['checkout.succeeded', 'checkout.canceled'],
  refunded: ['payment.authorized', 'checkout.succeeded', 'payment.succeeded', 'payment.refunded'],
  refunded_in_parts: [
    'payment.authorized',
    'payment.succeeded',
    'payment.partially_refunded',
    'payment.refunded',
  ],
  charged_back: ['payment.authorized', 'payment.succeeded', 'payment.settled', 'payment.chargeback'],
} as const satisfies Record<string, readonly PaymentEvent['type'][]>
export type PaymentPlot = keyof typeof PAYMENT_PLOTS

/** The events of a one-time payment for `pro_a`, `pace` minutes apart. */
export function tellPayment(
  telling: Telling,
  plot: PaymentPlot,
  pace: number,
): readonly (PaymentEvent | SubscriptionEvent)[] {
  const reporter = createReporter(telling)
  PAYMENT_PLOTS[plot].forEach((type, step) => {
    reporter.payment(step * pace, type, telling.id, 'pro_a', null)
  })
  return reporter.events
}
