import type { Policy } from '../entitlements/policy.js'
import { isDecisive } from '../entitlements/reading.js'
import { PAYMENT_EVENT_TYPES, SUBSCRIPTION_EVENT_TYPES } from '../provider/event-types.js'

/** The types of event that wait, under a policy, as long as they name no source that is known. */
export function decisiveTypes(policy: Policy): readonly string[] {
  return [...PAYMENT_EVENT_TYPES, ...SUBSCRIPTION_EVENT_TYPES].filter((type) => isDecisive(type, policy))
}
