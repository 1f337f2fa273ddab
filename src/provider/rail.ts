import type { RailProof } from './event.js'
import { text } from './fields.js'
import type { JsonObject } from './json.js'

const CARD_METHOD: RailProof = { rail: 'card', strength: 3 }
const CRYPTO_METHOD: RailProof = { rail: 'crypto', strength: 3 }
const CARD_TYPE: RailProof = { rail: 'card', strength: 2 }
const CRYPTO_FIELD: RailProof = { rail: 'crypto', strength: 1 }
const CARD_FIELD: RailProof = { rail: 'card', strength: 1 }

/** Names of payment methods, in upper case; any other word proves nothing. */
const METHODS: ReadonlyMap<string, RailProof> = new Map([
  ['CARD', CARD_METHOD],
  ['WALLET_A', CARD_METHOD],
  ['WALLET_B', CARD_METHOD],
  ['CRYPTO', CRYPTO_METHOD],
])
/** The names in the legacy generation. */
const SOURCES: ReadonlyMap<string, RailProof> = new Map([
  ['FIAT', CARD_METHOD],
  ['CRYPTO', CRYPTO_METHOD],
])

/** Wire names of types that are documented for card payments only: the generations differ. */
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

/*
 * The evidence in one event for its payment's rail. The strongest is a method, then the type, then a field that only
 * one rail fills in.
 */

export function methodProof(payment: JsonObject): RailProof | null {
  return (
    proofOf(METHODS, text(payment.method)) ??
    proofOf(METHODS, text(payment.paymentMethod, payment.payment_method)) ??
    proofOf(METHODS, text(payment.rail))
  )
}

/** The same for the legacy generation's own field. */
export function sourceProof(payment: JsonObject): RailProof | null {
  return proofOf(SOURCES, text(payment.source))
}

export function typeProof(wireType: string): RailProof | null {
  return CARD_ONLY_TYPES.has(wireType) ? CARD_TYPE : null
}

/** `inner` is the same payment, from another place in the event. */
export function fieldProof(payment: JsonObject, inner: JsonObject): RailProof | null {
  if (showsCrypto(payment) || showsCrypto(inner)) return CRYPTO_FIELD
  return showsDecline(payment) || showsDecline(inner) ? CARD_FIELD : null
}

function proofOf(words: ReadonlyMap<string, RailProof>, word: string | null): RailProof | null {
  return word === null ? null : (words.get(word.toUpperCase()) ?? null)
}

function showsCrypto(payment: JsonObject): boolean {
  return (
    hasValue(payment.asset) ||
    hasValue(payment.deposit) ||
    hasValue(payment.depositAddress ?? payment.deposit_address) ||
    hasValue(payment.cryptoSettlementMode ?? payment.crypto_settlement_mode) ||
    hasValue(payment.txHash ?? payment.tx_hash)
  )
}

function showsDecline(payment: JsonObject): boolean {
  return (
    hasValue(payment.declineCode ?? payment.decline_code) ||
    hasValue(payment.declineCategory ?? payment.decline_category)
  )
}

/** Text or an object: no other type is documented for any of these fields. */
function hasValue(value: unknown): boolean {
  return typeof value === 'string' ? value !== '' : typeof value === 'object' && value !== null
}
