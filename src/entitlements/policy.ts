/* What a merchant decides: which types grant and revoke access on which rail, and the switches. */

import type { Rail } from '../provider/event.js'
import type { PaymentEventType, SubscriptionEventType } from '../provider/event-types.js'

export type GrantType = PaymentEventType
export type RevokeType = PaymentEventType | SubscriptionEventType

/** What grants and revokes access, and how the open questions of the documents are answered. */
export interface Policy {
  readonly grantOn: Readonly<Record<Rail, readonly GrantType[]>>
  readonly revokeOn: Readonly<Record<Rail, readonly RevokeType[]>>
  /** `revoke`: any `payment.failed` that is a take-back ends a subscription's access, not only its basis'. */
  readonly failedRenewal: 'keep' | 'revoke'
  /** `period_end`: a cancellation lets access run to any later `expires_at` that it shows. */
  readonly canceled: 'effective' | 'period_end'
  /** `keep`: access stays when the last cycle of a fixed term is over. */
  readonly completed: 'period_end' | 'keep'
  /** `informs`: only grants pay; a cycle event without a payment changes nothing. */
  readonly paidCycle: 'grants' | 'informs'
  /** Milliseconds after the newest known period end at which access ends by itself; null: never. */
  readonly lapseAfter: number | null
}

/** The provider's documented table, and nothing beyond it. */
export const DOCUMENTED_POLICY: Policy = {
  grantOn: {
    card: ['payment.authorized', 'checkout.succeeded'],
    crypto: ['payment.succeeded'],
    unknown: ['payment.succeeded'],
  },
  revokeOn: {
    card: ['payment.failed', 'payment.refunded', 'subscription.expired'],
    crypto: ['payment.failed', 'subscription.expired'],
    unknown: ['payment.failed', 'payment.refunded', 'subscription.expired'],
  },
  failedRenewal: 'keep',
  canceled: 'effective',
  completed: 'period_end',
  paidCycle: 'grants',
  lapseAfter: null,
}

/** Take-backs whatever the rows say: such a payment will never be paid. */
export const TERMINAL_TYPES: readonly PaymentEventType[] = ['checkout.canceled', 'payment.canceled']
