import { type Policy, TERMINAL_TYPES } from '../../../src/entitlements/policy.js'
import type { PaymentEvent, Rail } from '../../../src/provider/event.js'
import type { SourceEvent } from './rail.js'

/** What the table says of an event: it grants, it takes back, or it does neither. */
export type Reading = 'grant' | 'take_back' | 'neutral'

/** Reads an event under `rail`: its payment's, or, for a subscription event, the subscription's. */
export function readingOf(event: SourceEvent, rail: Rail, policy: Policy): Reading {
  if (event.subject === 'subscription') {
    return has(policy.revokeOn[rail], event) ? 'take_back' : 'neutral'
  }
  if (event.paymentId === null) return 'neutral'
  if (has(TERMINAL_TYPES, event)) return 'take_back'
  if (grants(event, rail, policy)) return 'grant'
  return has(policy.revokeOn[rail], event) ? 'take_back' : 'neutral'
}

/** A rail learned later may add access, but never takes away what `unknown` gave. */
function grants(event: PaymentEvent, rail: Rail, policy: Policy): boolean {
  if (has(policy.grantOn[rail], event)) return true
  return event.railProof === null && has(policy.grantOn.unknown, event)
}

/** No list of a policy can name the types of reports. */
function has(types: readonly SourceEvent['type'][], event: SourceEvent): boolean {
  return types.includes(event.type)
}

/** Orders events of one instant: what pays comes before what ends. */
export function rankOf(event: SourceEvent, reading: Reading): number {
  if (reading === 'take_back') return 4
  if (event.type === 'subscription.canceled') return 3
  if (event.type === 'subscription.created' || event.type === 'subscription.renewed') return 2
  if (reading === 'grant' || event.type === 'payment.succeeded') return 1
  return 0
}
