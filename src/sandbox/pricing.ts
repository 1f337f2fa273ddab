/* What things cost: VAT, the service's fee, and crypto at fixed rates in place of the oracle's. */

import { hash } from 'node:crypto'
import type { Amounts, Currency } from './model.js'

interface Asset {
  readonly decimals: number
  /** The word NATIVE, or where the token's contract is. */
  readonly address: string
}

interface Chain {
  readonly name: string
  readonly assets: Readonly<Record<string, Asset>>
  /** How many confirmations a deposit needs, and how long each takes. */
  readonly confirmations: number
  readonly confirmationMs: number
  /** How long a deposit is waited for. */
  readonly windowMs: number
}

const MINUTE_MS = 60_000
const token = (label: string, decimals = 6): Asset => ({
  decimals,
  address: `0x${hash('sha256', label).slice(0, 40)}`,
})
const native = (decimals: number): Asset => ({ decimals, address: 'NATIVE' })

export const CHAINS: Readonly<Record<number, Chain>> = {
  1: {
    name: 'Ethereum',
    assets: { USDC: token('1 USDC'), USDT: token('1 USDT'), ETH: native(18) },
    confirmations: 12,
    confirmationMs: 12_000,
    windowMs: 60 * MINUTE_MS,
  },
  8453: {
    name: 'Base',
    assets: { USDC: token('8453 USDC'), ETH: native(18) },
    confirmations: 10,
    confirmationMs: 2_000,
    windowMs: 30 * MINUTE_MS,
  },
  42161: {
    name: 'Arbitrum',
    assets: { USDC: token('42161 USDC'), ETH: native(18) },
    confirmations: 20,
    confirmationMs: 1_000,
    windowMs: 30 * MINUTE_MS,
  },
  56: {
    name: 'BSC',
    assets: { USDC: token('56 USDC', 18), USDT: token('56 USDT', 18), BNB: native(18) },
    confirmations: 15,
    confirmationMs: 3_000,
    windowMs: 30 * MINUTE_MS,
  },
  101: {
    name: 'Solana',
    assets: { USDC: { decimals: 6, address: hash('sha256', '101 USDC').slice(0, 44) }, SOL: native(9) },
    confirmations: 32,
    confirmationMs: 400,
    windowMs: 15 * MINUTE_MS,
  },
}
export const CHAIN_IDS = Object.keys(CHAINS).map(Number)

/** Base Sepolia stands in for every chain where a buyer leaves the choice open. */
export const DEFAULT_CHAIN = 8453

/** In US cents. */
const RATE_CENTS: Readonly<Record<string, number>> = {
  USDC: 100,
  USDT: 100,
  ETH: 300_000,
  BNB: 60_000,
  SOL: 15_000,
}
const US_CENTS_PER_EURO_CENT = 1.08

/** A deposit of less would not pay for its own network fee. */
export const LEAST_CRYPTO_CENTS = 50

export function assetOf(chainId: number, symbol: string): Asset | undefined {
  return CHAINS[chainId]?.assets[symbol.toUpperCase()]
}

export function inUsCents(cents: number, currency: Currency): number {
  return currency === 'USD' ? cents : Math.round(cents * US_CENTS_PER_EURO_CENT)
}

/** An amount in the asset's smallest unit. */
export function tokenAmount(cents: number, currency: Currency, chainId: number, symbol: string): string {
  const decimals = assetOf(chainId, symbol)?.decimals ?? 0
  const rate = BigInt(RATE_CENTS[symbol] ?? 100)
  return String((BigInt(inUsCents(cents, currency)) * 10n ** BigInt(decimals)) / rate)
}

/** The standard rates of some countries, in basis points; every other country has none. */
const VAT_BPS: Readonly<Record<string, number>> = {
  ...{ AT: 2000, BE: 2100, DE: 1900, DK: 2500, ES: 2100, FI: 2550, FR: 2000, IE: 2300, IT: 2200 },
  ...{ LU: 1700, NL: 2100, PL: 2300, PT: 2300, SE: 2500 },
}
const FEE_BPS = 500

export interface Charge {
  readonly priceCents: number
  readonly taxInclusive: boolean
  readonly country: string | null
  readonly merchantOfRecord: boolean
}

/** VAT applies where the service is merchant of record and the customer's country is known to have it. */
export function amountsOf({ priceCents, taxInclusive, country, merchantOfRecord }: Charge): Amounts {
  const vatRateBps = (merchantOfRecord && country !== null && VAT_BPS[country]) || null
  const share = (vatRateBps ?? 0) / 10_000
  const vatAmountCents = Math.round(taxInclusive ? priceCents - priceCents / (1 + share) : priceCents * share)
  const grossAmountCents = taxInclusive ? priceCents : priceCents + vatAmountCents
  const platformFeeCents = Math.round(((grossAmountCents - vatAmountCents) * FEE_BPS) / 10_000)
  return {
    grossAmountCents,
    vatAmountCents,
    vatRateBps,
    platformFeeCents,
    merchantNetCents: grossAmountCents - vatAmountCents - platformFeeCents,
  }
}

/** The prorated difference of two prices for the rest of a cycle. */
export function proratedCents(differenceCents: number, start: number, end: number, now: number): number {
  const left = Math.min(1, Math.max(0, (end - now) / (end - start)))
  return Math.round(differenceCents * left)
}
