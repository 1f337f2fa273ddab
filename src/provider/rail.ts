import type { ProvenRail, RailProof } from './event.js'
import { anything, type ShownOf, text } from './fields.js'

/** The fields of a payment that may tell its rail. */
export const railFields = {
  method: text,
  paymentMethod: text,
  rail: text,
  asset: anything,
  deposit: anything,
  depositAddress: anything,
  cryptoSettlementMode: anything,
  txHash: anything,
  declineCode: anything,
  declineCategory: anything,
}
/** The legacy generation's own word for the method. */
export const legacyRailFields = { ...railFields, source: text }

type RailFields = Partial<ShownOf<typeof legacyRailFields>>

/** Words for a method of payment, in upper case; any other word says nothing. */
const RAIL_OF_METHOD: ReadonlyMap<string, ProvenRail> = new Map([
  ['CARD', 'card'],
  ['WALLET_A', 'card'],
  ['WALLET_B', 'card'],
  ['CRYPTO', 'crypto'],
])
const RAIL_OF_SOURCE: ReadonlyMap<string, ProvenRail> = new Map([
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

/**
 * The strongest proof of a payment's rail that one event holds: a method, then the type, then a field that
 * only one rail fills in. `payments` are the same payment, as the event shows it in one place and another.
 */
export function proveRail(wireType: string, payments: readonly RailFields[]): RailProof | null {
  for (const payment of payments) {
    const rail = railOfMethod(payment)
    if (rail) return { rail, strength: 3 }
  }
  if (CARD_ONLY_TYPES.has(wireType)) return { rail: 'card', strength: 2 }
  if (payments.some(showsCrypto)) return { rail: 'crypto', strength: 1 }
  if (payments.some(showsDecline)) return { rail: 'card', strength: 1 }
  return null
}

function railOfMethod({ method, paymentMethod, rail, source }: RailFields): ProvenRail | undefined {
  return railOf(method) ?? railOf(paymentMethod) ?? railOf(rail) ?? railOf(source, RAIL_OF_SOURCE)
}

function railOf(word: string | null | undefined, words = RAIL_OF_METHOD): ProvenRail | undefined {
  return word ? words.get(word.toUpperCase()) : undefined
}

function showsCrypto(payment: RailFields): boolean {
  return (
    hasValue(payment.asset) ||
    hasValue(payment.deposit) ||
    hasValue(payment.depositAddress) ||
    hasValue(payment.cryptoSettlementMode) ||
    hasValue(payment.txHash)
  )
}

function showsDecline(payment: RailFields): boolean {
  return hasValue(payment.declineCode) || hasValue(payment.declineCategory)
}

/** Text or an object: no other type is documented for any of these fields. */
function hasValue(value: unknown): boolean {
  return typeof value === 'string' ? value !== '' : typeof value === 'object' && value !== null
}
