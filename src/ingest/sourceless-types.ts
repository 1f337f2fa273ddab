import type { Policy } from '../entitlements/policy.js'
import { isDecisive } from '../entitlements/reading.js'
import { PAYMENT_EVENT_TYPES, SUBSCRIPTION_EVENT_TYPES } from '../provider/event-types.js'
import type { SourcelessTypes } from '../store/sourceless-events.js'

const SOURCE_EVENT_TYPES = [...PAYMENT_EVENT_TYPES, ...SUBSCRIPTION_EVENT_TYPES]

/** Which events wait, under a policy, as long as they name no source that is known. */
export function sourcelessTypes(policy: Policy): SourcelessTypes {
  return {
    decisive: SOURCE_EVENT_TYPES.filter((type) => isDecisive(type, policy)),
    informing: SOURCE_EVENT_TYPES.filter((type) => !isDecisive(type, policy)),
  }
}
