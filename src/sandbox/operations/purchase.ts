/* What the creation of payments, subscriptions and checkout sessions has in common. */

import { z } from 'zod'
import { type Code, invalidFields, ServiceError } from '../codes.js'
import {
  type Context,
  CURRENCIES,
  type Currency,
  type Customer,
  METHODS,
  type Payment,
  type Product,
} from '../model.js'
import { customerByEmail, fillIn, outcomeOfToken, pay } from '../paying.js'
import { chooseMethod } from '../payment.js'
import { iso } from '../views-v3.js'
import type { World } from '../world.js'
import { INSTANT, NAME, PRICE, TEXT, WEB_URL } from './operation.js'

const CUSTOM_FIELD = z.object({
  key: TEXT,
  label: z.string().max(255),
  type: TEXT,
  required: z.boolean().optional(),
  placeholder: z.string().max(255).optional(),
  options: z.array(z.object({ value: z.string(), label: z.string() })).optional(),
  validation: z.object({ regex: z.string().optional(), errorMessage: z.string().optional() }).optional(),
})

export const COUNTRY = z.string().regex(/^[A-Z]{2}$/, 'must be two capital letters')

export const PURCHASE = z.object({
  productId: TEXT,
  customerId: TEXT.optional(),
  customerEmail: z.email().max(255).optional(),
  customerFirstName: NAME.max(100).optional(),
  customerLastName: NAME.max(100).optional(),
  /** Where the buyer is billed, for VAT. */
  customerCountry: COUNTRY.optional(),
  priceCents: PRICE.optional(),
  currency: z.enum(CURRENCIES).optional(),
  externalRef: z.string().max(255).nullable().default(null),
  metadata: z.record(z.string(), z.unknown()).nullable().default(null),
  customFields: z.array(CUSTOM_FIELD).max(10).nullable().default(null),
  successUrl: WEB_URL.nullable().default(null),
  cancelUrl: WEB_URL.nullable().default(null),
  expiresAt: INSTANT.optional(),
})
type Purchase = z.output<typeof PURCHASE>

/** How a v3 request says what it pays with. */
export const INSTRUMENT = z.object({
  method: z.enum(METHODS).optional(),
  card: z
    .object({
      tokenizedInstrument: TEXT.optional(),
      capture: z.enum(['automatic', 'manual']).default('automatic'),
    })
    .optional(),
  crypto: z
    .object({
      mode: z.enum(['DIRECT', 'AUTOSWAP']).default('DIRECT'),
      chainId: z.int().optional(),
      assetId: z.string().max(20).optional(),
    })
    .optional(),
})

export const contextOf = ({ externalRef, metadata, successUrl, cancelUrl }: Purchase): Context => ({
  ...{ externalRef, metadata, successUrl, cancelUrl },
})

/** The buyer, by id, else by email; undefined: the checkout will ask. @throws {ServiceError} `code` */
export function buyerOf(
  world: World,
  body: Purchase,
  code: Code = 'CUSTOMER_NOT_FOUND',
): Customer | undefined {
  const { customerId, customerEmail, customerFirstName, customerLastName, customerCountry = null } = body
  const name = [customerFirstName, customerLastName].filter(Boolean).join(' ') || null
  if (customerId === undefined) {
    return customerEmail === undefined
      ? undefined
      : customerByEmail(world, customerEmail, name, customerCountry)
  }
  const customer = world.find('customer', customerId)
  if (customer?.deletedAt === null) return fillIn(world, customer, name, customerCountry)
  throw new ServiceError(code, `There is no customer ${customerId}.`)
}

/** The product's own price, or the one that the request names where the product leaves it open. */
export function priceOf(
  product: Product,
  { priceCents, currency }: Purchase,
): { readonly priceCents: number; readonly currency: Currency } {
  if (!product.isCustomPrice) {
    if (priceCents === undefined) return { priceCents: product.priceCents ?? 0, currency: product.currency }
    throw invalidFields({ field: 'priceCents', message: 'must not be sent for a product with a fixed price' })
  }
  if (priceCents === undefined) {
    throw new ServiceError(
      'PRODUCT_PRICE_MISSING',
      'The product has no price of its own: send priceCents and currency.',
    )
  }
  if (currency === undefined)
    throw invalidFields({ field: 'currency', message: 'is required with priceCents' })
  return { priceCents: Number(priceCents), currency }
}

/** @throws {ServiceError} `PRODUCT_ARCHIVED`, `PRODUCT_OUT_OF_STOCK` */
export function assertOnSale(world: World, product: Product): void {
  const { id, status, supply, frequencyInDays } = product
  if (status !== 'ACTIVE')
    throw new ServiceError('PRODUCT_ARCHIVED', `The product ${id} is ${status}, not ACTIVE.`)
  if (supply === null) return
  let sold = 0
  if (frequencyInDays === null) {
    for (const one of world.each('payment'))
      if (one.productId === id && one.paymentReceivedAt !== null) sold += 1
  } else {
    for (const one of world.each('subscription')) {
      if (one.productId === id && one.endedAt === null && one.currentCycle > 0) sold += 1
    }
  }
  if (sold >= supply) throw new ServiceError('PRODUCT_OUT_OF_STOCK', `All ${supply} of ${id} are sold.`)
}

/** A deadline that has passed could only be a mistake. */
export function deadlineIn(world: World, expiresAt: number | undefined): number | undefined {
  if (expiresAt === undefined || expiresAt > world.now) return expiresAt
  throw invalidFields({ field: 'expiresAt', message: `must be after the sandbox's clock, ${iso(world.now)}` })
}

/** Has a new payment use what the request says it pays with; a token is charged at once. */
export function startPayment(world: World, payment: Payment, body: z.output<typeof INSTRUMENT>): Payment {
  const { method, card, crypto } = body
  if (crypto !== undefined || method === 'CRYPTO') return chooseMethod(world, payment, 'CRYPTO', crypto)
  const token = card?.tokenizedInstrument
  if (token !== undefined)
    return pay(world, payment, { method: method ?? 'CARD', outcome: outcomeOfToken(token) })
  return method === undefined ? payment : chooseMethod(world, payment, method)
}

export const checkoutUrl = (baseUrl: string, id: string): string => `${baseUrl}/checkout/${id}`
