/* What things cost: VAT, the service's fee, and crypto at fixed rates in place of the oracle's. */

import { hash } from 'node:crypto'
import type { CryptoChoice as Choice, Currency } from '../provider/requests.js'
import { refuse } from './codes.js'
import type { Deposit, Payment, Product } from './model.js'

/** How long a payment is waited for, unless its checkout session or its chain says otherwise. */
export const CARD_WINDOW_MS = 30 * 60_000
/** How long a deposit is waited for, on these chains. */
export const WINDOW_MS: Readonly<Record<number, number>> = { 1: 60 * 60_000, 101: 15 * 60_000 }

interface Chain {
  readonly name: string
  /** The decimals of each. */
  readonly assets: Readonly<Record<string, number>>
  /** How many confirmations a deposit needs, and how long each takes. */
  readonly confirmations: number
  readonly confirmationMs: number
}

export const CHAINS: Readonly<Record<number, Chain>> = {
  1: { name: 'Ethereum', assets: { USDC: 6, USDT: 6, ETH: 18 }, confirmations: 12, confirmationMs: 12_000 },
  8453: { name: 'Base', assets: { USDC: 6, ETH: 18 }, confirmations: 10, confirmationMs: 2_000 },
  42161: { name: 'Arbitrum', assets: { USDC: 6, ETH: 18 }, confirmations: 20, confirmationMs: 1_000 },
  56: { name: 'BSC', assets: { USDC: 18, USDT: 18, BNB: 18 }, confirmations: 15, confirmationMs: 3_000 },
  101: { name: 'Solana', assets: { USDC: 6, SOL: 9 }, confirmations: 32, confirmationMs: 400 },
}
export const CHAIN_IDS = Object.keys(CHAINS).map(Number)

/** Base Sepolia stands in for every chain where a buyer leaves the choice open. */
const DEFAULT_CHAIN = 8453
const SOLANA = 101

const NATIVE = ['ETH', 'BNB', 'SOL']
/** In US cents. */
const RATE_CENTS: Record<string, number> = { USDC: 100, USDT: 100, ETH: 300_000, BNB: 60_000, SOL: 15_000 }
const US_CENTS_PER_EURO_CENT = 1.08

/** A deposit of less would not pay for its own network fee. */
const LEAST_CRYPTO_CENTS = 50

/** The address is where the token's contract is, or the word NATIVE. */
export function assetOf(chainId: number, symbol: string) {
  const decimals = CHAINS[chainId]?.assets[symbol.toUpperCase()]
  if (decimals === undefined) return undefined
  if (NATIVE.includes(symbol.toUpperCase())) return { decimals, address: 'NATIVE' }
  const digest = hash('sha256', `${chainId} ${symbol.toUpperCase()}`)
  return { decimals, address: chainId === SOLANA ? digest.slice(0, 44) : `0x${digest.slice(0, 40)}` }
}

export function inUsCents(cents: number, currency: Currency): number {
  return currency === 'USD' ? cents : Math.round(cents * US_CENTS_PER_EURO_CENT)
}

export type CryptoChoice = Choice & { readonly mode?: Deposit['mode'] | undefined }

/** The deposit that would pay for it. @throws {ServiceError} `CRYPTO_ASSET_NOT_ACCEPTED`, `CRYPTO_PAYMENT_BELOW_MIN` */
export function quote(payment: Payment, product: Product | undefined, crypto: CryptoChoice): Deposit {
  const { acceptedChains = [], acceptedAssets = [] } = product ?? {}
  const preferred = acceptedChains.includes(DEFAULT_CHAIN) ? DEFAULT_CHAIN : acceptedChains[0]
  const { chainId = preferred ?? DEFAULT_CHAIN, mode = 'DIRECT' } = crypto
  const first = acceptedAssets.find((one) => assetOf(chainId, one) !== undefined)
  const symbol = crypto.assetId?.toUpperCase() ?? first ?? ''
  const asset = assetOf(chainId, symbol)
  if (!acceptedChains.includes(chainId) || !acceptedAssets.includes(symbol) || asset === undefined) {
    refuse('CRYPTO_ASSET_NOT_ACCEPTED', `The product does not take ${symbol} on chain ${chainId}.`)
  }
  const cents = inUsCents(payment.grossAmountCents, payment.currency)
  if (cents < LEAST_CRYPTO_CENTS) {
    refuse('CRYPTO_PAYMENT_BELOW_MIN', `A crypto payment is at least ${LEAST_CRYPTO_CENTS} US cents.`)
  }
  const expected = (BigInt(cents) * 10n ** BigInt(asset.decimals)) / BigInt(RATE_CENTS[symbol] ?? 100)
  const nothingYet = { received: '0', observed: null, detectedAt: null, txHash: null, warnings: [] }
  return { chainId, symbol, mode, expected: String(expected), ...nothingYet }
}

/** Standard rates in basis points, and the countries that have them; every other country has none. */
const COUNTRIES_BY_VAT_BPS = {
  ...{ 1700: 'LU', 1900: 'DE', 2000: 'AT FR', 2100: 'BE ES NL', 2200: 'IT' },
  ...{ 2300: 'IE PL PT', 2500: 'DK SE', 2550: 'FI' },
}
const FEE_BPS = 500

/** VAT is charged where the customer's country is known to have it. */
export function vatRateIn(country: string | null): number | null {
  const rates = Object.entries(COUNTRIES_BY_VAT_BPS)
  return Number(rates.find(([, countries]) => country && countries.split(' ').includes(country))?.[0]) || null
}

export function amountsOf(priceCents: number, taxInclusive: boolean, vatRateBps: number | null) {
  const share = (vatRateBps ?? 0) / 10_000
  const vatAmountCents = Math.round(taxInclusive ? priceCents - priceCents / (1 + share) : priceCents * share)
  const grossAmountCents = taxInclusive ? priceCents : priceCents + vatAmountCents
  const netCents = grossAmountCents - vatAmountCents
  const platformFeeCents = Math.round((netCents * FEE_BPS) / 10_000)
  const merchantNetCents = netCents - platformFeeCents
  return { grossAmountCents, vatAmountCents, vatRateBps, platformFeeCents, merchantNetCents }
}
