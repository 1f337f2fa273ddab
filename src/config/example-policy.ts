import type { PolicyFile } from './policy-schema.js'

/**
 * The documented table, plus what merchants expect where it is silent: a settled card payment grants
 * (its authorization may have been missed), and a chargeback takes back.
 */
export const EXAMPLE_POLICY: PolicyFile = {
  grantOn: {
    card: ['payment.authorized', 'checkout.succeeded', 'payment.succeeded'],
    crypto: ['payment.succeeded'],
    unknown: ['payment.succeeded'],
  },
  revokeOn: {
    card: ['payment.failed', 'payment.refunded', 'subscription.expired', 'payment.chargeback'],
    crypto: ['payment.failed', 'subscription.expired'],
    unknown: ['payment.failed', 'payment.refunded', 'subscription.expired', 'payment.chargeback'],
  },
  failedRenewal: 'keep',
  canceled: 'effective',
  completed: 'period_end',
  paidCycle: 'grants',
  lapseAfter: null,
}
