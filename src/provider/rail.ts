import type { ProvenRail, RailProof } from './event.js'

/** What a payment's fields say about its rail, each list in order of preference. */
export interface RailEvidence {
  /** Words for the method of payment, in any letter case; unknown words say nothing. */
  readonly methods: readonly (string | null | undefined)[]
  /** Values of fields that only crypto payments fill in. */
  readonly cryptoOnly: readonly unknown[]
  /** Values of fields that only a declined card fills in. */
  readonly declines: readonly unknown[]
}

const RAIL_OF_METHOD: ReadonlyMap<string, ProvenRail> = new Map([
  ['CARD', 'card'],
  ['WALLET_A', 'card'],
  ['WALLET_B', 'card'],
  ['FIAT', 'card'],
  ['CRYPTO', 'crypto'],
])

/** Types that the documents send for card payments only, by their name on the wire: the generations differ. */
const CARD_ONLY_TYPES: ReadonlySet<string> = new Set([
  'CHECKOUT_SUCCESS',
  'CHECKOUT_FAILED',
  'PARTIAL_REFUNDED',
  'PAYMENT_REFUNDED',
  'PAYMENT_CHARGEBACK',
  'payment.authorized',
  'payment.canceled',
  'payment.settled',
])

/** The strongest proof of a payment's rail that one event holds: a method, then its type, then a rail's own fields. */
export function proveRail(
  wireType: string,
  { methods, cryptoOnly, declines }: RailEvidence,
): RailProof | null {
  for (const method of methods) {
    const rail = method && RAIL_OF_METHOD.get(method.toUpperCase())
    if (rail) return { rail, strength: 3 }
  }
  if (CARD_ONLY_TYPES.has(wireType)) return { rail: 'card', strength: 2 }
  if (cryptoOnly.some(hasValue)) return { rail: 'crypto', strength: 1 }
  if (declines.some(hasValue)) return { rail: 'card', strength: 1 }
  return null
}

/** Text or an object: the only types these fields are documented with. */
function hasValue(value: unknown): boolean {
  return typeof value === 'string' ? value !== '' : typeof value === 'object' && value !== null
}
