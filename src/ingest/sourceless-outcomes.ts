import { type SourcelessOutcomes, sourcelessOutcomes } from '../entitlements/disposition.js'
import type { Policy } from '../entitlements/policy.js'
import { PAYMENT_EVENT_TYPES, SUBSCRIPTION_EVENT_TYPES } from '../provider/event-types.js'

/** What becomes of events without a source under a policy. */
export function sourcelessOutcomesUnder(policy: Policy): SourcelessOutcomes {
  return sourcelessOutcomes([...PAYMENT_EVENT_TYPES, ...SUBSCRIPTION_EVENT_TYPES], policy)
}
