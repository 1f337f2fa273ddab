/* What the creation of payments, subscriptions and checkout sessions has in common. */

import { z } from 'zod'
import { invalidFields, ServiceError } from '../codes.js'
import { type Context, CURRENCIES, type Currency, type Customer, type Product, type Rail } from '../model.js'
import { customerByEmail, fillIn } from '../paying.js'
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

export const PURCHASE = z.object({
  productId: TEXT,
  customerId: TEXT.optional(),
  customerEmail: z.email().max(255).optional(),
  customerFirstName: NAME.max(100).optional(),
  customerLastName: NAME.max(100).optional(),
  /** Where the buyer is billed, for VAT. */
  customerCountry: z
    .string()
    .regex(/^[A-Z]{2}$/, 'must be two capital letters')
    .optional(),
  priceCents: PRICE.optional(),
  currency: z.enum(CURRENCIES).optional(),
  externalRef: z.string().max(255).nullish(),
  metadata: z.record(z.string(), z.unknown()).nullish(),
  customFields: z.array(CUSTOM_FIELD).max(10).optional(),
  successUrl: WEB_URL.nullish(),
  cancelUrl: WEB_URL.nullish(),
  expiresAt: INSTANT.optional(),
})
type Purchase = z.output<typeof PURCHASE>

/** How a v3 request says what it pays with. */
export const INSTRUMENT = z.object({
  method: z.enum(['CARD', 'WALLET_A', 'WALLET_B', 'CRYPTO']).optional(),
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

export function contextOf({ externalRef, metadata, successUrl, cancelUrl }: Purchase): Context {
  return {
    externalRef: externalRef ?? null,
    metadata: metadata ?? null,
    successUrl: successUrl ?? null,
    cancelUrl: cancelUrl ?? null,
  }
}

/** The buyer, by id, else by email; undefined: the checkout will ask. @throws {ServiceError} `code` */
export function buyerOf(
  world: World,
  body: Purchase,
  code: 'CUSTOMER_NOT_FOUND' | 'SUBSCRIPTION_CUSTOMER_NOT_FOUND' = 'CUSTOMER_NOT_FOUND',
): Customer | undefined {
  const { customerId, customerEmail, customerFirstName, customerLastName, customerCountry = null } = body
  const name = [customerFirstName, customerLastName].filter(Boolean).join(' ') || null
  if (customerId === undefined) {
    return customerEmail === undefined
      ? undefined
      : customerByEmail(world, customerEmail, name, customerCountry)
  }
  const customer = world.find('customer', customerId)
  if (customer === undefined || customer.deletedAt !== null) {
    throw new ServiceError(code, `There is no customer ${customerId}.`)
  }
  return fillIn(world, customer, name, customerCountry)
}

export interface Price {
  readonly priceCents: number
  readonly currency: Currency
}

/** The product's own price, or the one that the request names where the product leaves it open. */
export function priceOf(product: Product, { priceCents, currency }: Purchase): Price {
  if (!product.isCustomPrice) {
    if (priceCents !== undefined) {
      throw invalidFields({
        field: 'priceCents',
        message: 'must not be sent for a product with a fixed price',
      })
    }
    return { priceCents: product.priceCents ?? 0, currency: product.currency }
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
  if (product.status !== 'ACTIVE') {
    throw new ServiceError('PRODUCT_ARCHIVED', `The product ${product.id} is ${product.status}, not ACTIVE.`)
  }
  if (product.supply === null) return
  let sold = 0
  if (product.frequencyInDays === null) {
    for (const { productId, receivedAt } of world.each('payment')) {
      if (productId === product.id && receivedAt !== null) sold += 1
    }
  } else {
    for (const { productId, endedAt, currentCycle } of world.each('subscription')) {
      if (productId === product.id && endedAt === null && currentCycle > 0) sold += 1
    }
  }
  if (sold >= product.supply) {
    throw new ServiceError('PRODUCT_OUT_OF_STOCK', `All ${product.supply} of ${product.id} are sold.`)
  }
}

export function railOf({ method, crypto }: z.output<typeof INSTRUMENT>): Rail | null {
  if (crypto !== undefined || method === 'CRYPTO') return 'crypto'
  return method === undefined ? null : 'card'
}

export const checkoutUrl = (baseUrl: string, id: string): string => `${baseUrl}/checkout/${id}`
