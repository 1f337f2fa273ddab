import { type Policy, TERMINAL_TYPES } from '../../../src/entitlements/policy.js'
import type { PaymentEvent, Rail } from '../../../src/provider/event.js'
import type { SourceEvent } from './rail.js'

/** What the table says of an event: it grants, it takes back, or it does neither. */
export type Reading = 'grant' | 'take_back' | 'neutral'

/** Reads an event under `rail`: its payment's, or, for a subscription event, the subscription's. */
export function readingOf(event: SourceEvent, rail: Rail, policy: Policy): Reading {
  if (event.subject === 'subscription') {
    return policy.revokeOn[rail].includes(event.type) ? 'take_back' : 'neutral'
  }
  if (event.paymentId === null) return 'neutral'
  if (TERMINAL_TYPES.includes(event.type)) return 'take_back'
  if (grants(event, rail, policy)) return 'grant'
  return policy.revokeOn[rail].includes(event.type) ? 'take_back' : 'neutral'
}

/** A rail learned later may add access, but never takes away what `unknown` gave. */
function grants(event: PaymentEvent, rail: Rail, policy: Policy): boolean {
  if (policy.grantOn[rail].includes(event.type)) return true
  return event.railProof === null && policy.grantOn.unknown.includes(event.type)
}

/** Orders events of one instant: what pays comes before what ends. */
export function rankOf(event: SourceEvent, reading: Reading): number {
  if (reading === 'take_back') return 4
  if (event.type === 'subscription.canceled') return 3
  if (event.type === 'subscription.created' || event.type === 'subscription.renewed') return 2
  if (reading === 'grant' || event.type === 'payment.succeeded') return 1
  return 0
}
