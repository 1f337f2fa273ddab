import { z } from 'zod'
import { invalidFields, ServiceError } from '../codes.js'
import { CURRENCIES, PLATFORMS, type Product } from '../model.js'
import { assetOf, CHAIN_IDS, CHAINS } from '../pricing.js'
import { legacyProductView } from '../views-v2.js'
import { productView } from '../views-v3.js'
import type { World } from '../world.js'
import {
  assertSome,
  CURSOR_QUERY,
  cursorPage,
  found,
  NAME,
  type Operation,
  operation,
  PAGE_QUERY,
  PRICE,
  recordPage,
  TEXT,
  WEB_URL,
} from './operation.js'

const FIELDS = z.object({
  name: NAME.min(1).max(100),
  description: z.string().max(500).nullish(),
  priceCents: PRICE.optional(),
  isCustomPrice: z.boolean().optional(),
  currency: z.enum(CURRENCIES),
  paymentMethods: z.array(z.enum(['CARD', 'CRYPTO'])).min(1),
  frequencyInDays: z.int().min(1).max(3650).nullish(),
  platform: z.enum(PLATFORMS).default('WEB'),
  acceptedAssets: z.array(z.string().max(20)).optional(),
  acceptedChains: z.array(z.int()).optional(),
  supply: z.int().min(1).nullish(),
  imageUrl: WEB_URL.nullish(),
  taxInclusive: z.boolean().optional(),
  communityGuildId: TEXT.optional(),
  communityRoleId: TEXT.optional(),
  communityRemindersId: TEXT.optional(),
  messengerGroupId: z
    .string()
    .regex(/^-\d{1,20}$/, 'must be a negative number as text')
    .optional(),
})
const CHANGES = FIELDS.omit({ platform: true })
  .partial()
  .extend({
    status: z.enum(['ACTIVE', 'ARCHIVED']).optional(),
  })

const LEAST_CARD_CENTS = 200

/** The rules that concern more than one field. */
function assertSellable(product: Product): void {
  const { priceCents, isCustomPrice, paymentMethods, platform } = product
  const wrong = [
    ...(priceCents === null && !isCustomPrice ? [{ field: 'priceCents', message: 'is required' }] : []),
    ...(priceCents !== null && priceCents < LEAST_CARD_CENTS && paymentMethods.includes('CARD')
      ? [{ field: 'priceCents', message: `must be at least ${LEAST_CARD_CENTS} for CARD` }]
      : []),
    ...(platform === 'COMMUNITY' ? (['communityGuildId', 'communityRoleId'] as const) : [])
      .filter((field) => product[field] === null)
      .map((field) => ({ field, message: 'is required for COMMUNITY' })),
    ...(platform === 'MESSENGER' && product.messengerGroupId === null
      ? [{ field: 'messengerGroupId', message: 'is required for MESSENGER' }]
      : []),
    ...(product.assets.length === 0
      ? [{ field: 'acceptedAssets', message: 'no accepted chain has any of them' }]
      : []),
  ]
  if (wrong.length > 0) throw invalidFields(...wrong)
}

/** Symbols are resolved on every accepted chain; a chain that has none of them is dropped. */
function resolve(chains: readonly number[] | undefined, symbols: readonly string[] | undefined) {
  const accepted = chains ?? CHAIN_IDS
  const wanted = symbols?.map((symbol) => symbol.toUpperCase())
  const assetsOn = (id: number) =>
    Object.keys(CHAINS[id]?.assets ?? {}).filter((symbol) => wanted?.includes(symbol) ?? true)
  const kept = accepted.filter((id) => assetsOn(id).length > 0)
  const assets = [...new Set(kept.flatMap(assetsOn))].filter((symbol) =>
    kept.some((id) => assetOf(id, symbol)),
  )
  return { chains: kept, assets }
}

function createProduct(world: World, fields: z.output<typeof FIELDS>): Product {
  const at = world.tick()
  const product: Product = {
    id: world.makeId('pro'),
    name: fields.name,
    description: fields.description ?? null,
    // A messenger's bot has to be set up first.
    status: fields.platform === 'MESSENGER' ? 'PENDING' : 'ACTIVE',
    platform: fields.platform,
    frequencyInDays: fields.frequencyInDays ?? null,
    priceCents: fields.priceCents === undefined ? null : Number(fields.priceCents),
    isCustomPrice: fields.isCustomPrice ?? false,
    currency: fields.currency,
    supply: fields.supply ?? null,
    imageUrl: fields.imageUrl ?? null,
    paymentMethods: [...new Set(fields.paymentMethods)],
    ...resolve(fields.acceptedChains, fields.acceptedAssets),
    taxInclusive: fields.taxInclusive ?? true,
    communityGuildId: fields.communityGuildId ?? null,
    communityRoleId: fields.communityRoleId ?? null,
    communityRemindersId: fields.communityRemindersId ?? null,
    messengerGroupId: fields.messengerGroupId ?? null,
    createdAt: at,
    updatedAt: at,
  }
  assertSellable(product)
  return world.put('product', product)
}

function updateProduct(world: World, product: Product, body: z.output<typeof CHANGES>): Product {
  assertSome(body)
  if (body.frequencyInDays === null && product.frequencyInDays !== null) {
    throw new ServiceError(
      'RECURRING_REQUIRES_INTERVAL',
      'A recurring product keeps an interval: send frequencyInDays.',
    )
  }
  const { acceptedChains, acceptedAssets, priceCents, ...plain } = body
  const given = Object.fromEntries(Object.entries(plain).filter(([, value]) => value !== undefined))
  const changed = {
    ...product,
    ...given,
    ...(priceCents !== undefined && { priceCents: Number(priceCents) }),
    ...((acceptedChains || acceptedAssets) &&
      resolve(acceptedChains ?? product.chains, acceptedAssets ?? product.assets)),
    updatedAt: world.tick(),
  } as Product
  assertSellable(changed)
  return world.put('product', changed)
}

const named = (world: World, id: string | undefined) => found(world, 'product', id, 'PRODUCT_NOT_FOUND')

/** What was deleted is kept for its subscriptions, and in no list. */
const isListed = ({ status }: Product): boolean => status !== 'ARCHIVED'

export const PRODUCT_OPERATIONS: readonly Operation[] = [
  operation('POST /v3/products', { about: 'create product', status: 201, body: FIELDS }, (world, { body }) =>
    productView(createProduct(world, body)),
  ),
  operation('GET /v3/products', { about: 'list products', query: CURSOR_QUERY }, (world, { query }) =>
    cursorPage(
      query,
      ({ before, limit }) =>
        world
          .placed('product', {}, { before })
          .filter(({ item }) => isListed(item))
          .slice(0, limit),
      productView,
    ),
  ),
  operation('GET /v3/products/:id', { about: 'get product' }, (world, { params }) =>
    productView(named(world, params.id)),
  ),
  operation('PATCH /v3/products/:id', { about: 'update product', body: CHANGES }, (world, { params, body }) =>
    productView(updateProduct(world, named(world, params.id), body)),
  ),
  operation('DELETE /v3/products/:id', { about: 'delete product', status: 204 }, (world, { params }) => {
    world.put('product', { ...named(world, params.id), status: 'ARCHIVED', updatedAt: world.tick() })
  }),
  operation(
    'POST /api/product/create',
    { about: 'create product', status: 201, body: FIELDS },
    (world, { body }) => legacyProductView(createProduct(world, body)),
  ),
  operation(
    'PATCH /api/product/:productId',
    { about: 'update product', body: CHANGES },
    (world, { params, body }) =>
      legacyProductView(updateProduct(world, named(world, params.productId), body)),
  ),
  operation('GET /api/product/all', { about: 'list products', query: PAGE_QUERY }, (world, { query }) =>
    recordPage(world, 'product', {}, query, legacyProductView),
  ),
  operation('GET /api/product/:productId', { about: 'get product' }, (world, { params }) =>
    legacyProductView(named(world, params.productId)),
  ),
]
