import fc from 'fast-check'
import { DOCUMENTED_POLICY, type Policy, TERMINAL_TYPES } from '../../src/entitlements/policy.js'
import {
  PAYMENT_EVENT_TYPES,
  type PaymentEventType,
  SUBSCRIPTION_EVENT_TYPES,
  type SubscriptionEventType,
} from '../../src/provider/event-types.js'

const DAY = 24 * 60 * 60 * 1000

/** The policy of the example config: what merchants expect where the documented table is silent. */
export const EXAMPLE_POLICY: Policy = {
  ...DOCUMENTED_POLICY,
  grantOn: {
    ...DOCUMENTED_POLICY.grantOn,
    card: [...DOCUMENTED_POLICY.grantOn.card, 'payment.succeeded'],
  },
  revokeOn: {
    ...DOCUMENTED_POLICY.revokeOn,
    card: [...DOCUMENTED_POLICY.revokeOn.card, 'payment.chargeback'],
    unknown: [...DOCUMENTED_POLICY.revokeOn.unknown, 'payment.chargeback'],
  },
}

type Rows = Pick<Policy, 'grantOn' | 'revokeOn'>
type Switches = Omit<Policy, 'grantOn' | 'revokeOn'>

const switches: fc.Arbitrary<Switches> = fc.record({
  failedRenewal: fc.constantFrom('keep', 'revoke'),
  canceled: fc.constantFrom('effective', 'period_end'),
  completed: fc.constantFrom('period_end', 'keep'),
  paidCycle: fc.constantFrom('grants', 'informs'),
  lapseAfter: fc.constantFrom(null, DAY, 45 * DAY),
})

const paymentRoles = fc.tuple(
  ...PAYMENT_EVENT_TYPES.map((type) =>
    fc.constantFrom('grant', 'revoke', 'neither').map((role) => ({ type, role })),
  ),
)

/** One rail's row. No type stands on both sides, and what is terminal grants nothing: else it is no valid row. */
const row = fc
  .tuple(paymentRoles, fc.subarray([...SUBSCRIPTION_EVENT_TYPES]))
  .map(([roles, subscriptionTypes]) => {
    const typesWith = (wanted: string) => roles.filter(({ role }) => role === wanted).map(({ type }) => type)
    const grantOn: PaymentEventType[] = typesWith('grant').filter((type) => !TERMINAL_TYPES.includes(type))
    const revokeOn: (PaymentEventType | SubscriptionEventType)[] = [
      ...typesWith('revoke'),
      ...subscriptionTypes,
    ]
    return { grantOn, revokeOn }
  })

const randomRows: fc.Arbitrary<Rows> = fc
  .record({ card: row, crypto: row, unknown: row })
  .map(({ card, crypto, unknown }) => ({
    grantOn: { card: card.grantOn, crypto: crypto.grantOn, unknown: unknown.grantOn },
    revokeOn: { card: card.revokeOn, crypto: crypto.revokeOn, unknown: unknown.revokeOn },
  }))

const knownRows: fc.Arbitrary<Rows> = fc
  .constantFrom(DOCUMENTED_POLICY, EXAMPLE_POLICY)
  .map(({ grantOn, revokeOn }) => ({ grantOn, revokeOn }))

/** The two policies that merchants start from, these with any switches, and any other valid policy. */
export const policies: fc.Arbitrary<Policy> = fc.oneof(
  fc.constantFrom(DOCUMENTED_POLICY, EXAMPLE_POLICY),
  fc.tuple(knownRows, switches).map(([rows, rest]) => ({ ...rows, ...rest })),
  fc.tuple(randomRows, switches).map(([rows, rest]) => ({ ...rows, ...rest })),
)
