import { z } from 'zod'
import { invalidFields, ServiceError } from '../codes.js'
import { CURRENCIES, type Product } from '../model.js'
import { CHAIN_IDS, CHAINS } from '../pricing.js'
import { legacyProductView } from '../views-v2.js'
import { productView } from '../views-v3.js'
import type { World } from '../world.js'
import {
  CURSOR_QUERY,
  cursorPage,
  found,
  given,
  NAME,
  type Operation,
  operation,
  PAGE_QUERY,
  PRICE,
  recordPage,
  TEXT,
  WEB_URL,
} from './operation.js'

const orNull = <Schema extends z.ZodType>(schema: Schema) => schema.nullable().default(null)
const CENTS = PRICE.transform(Number)

const FIELDS = z.object({
  name: NAME.min(1).max(100),
  description: orNull(z.string().max(500)),
  priceCents: orNull(CENTS),
  isCustomPrice: z.boolean().default(false),
  currency: z.enum(CURRENCIES),
  paymentMethods: z.array(z.enum(['CARD', 'CRYPTO'])).min(1),
  frequencyInDays: orNull(z.int().min(1).max(3650)),
  platform: z.enum(['WEB', 'INVOICE', 'COMMUNITY', 'MESSENGER']).default('WEB'),
  acceptedAssets: z.array(z.string().max(20).toUpperCase()).optional(),
  acceptedChains: z.array(z.int()).default(CHAIN_IDS),
  supply: orNull(z.int().min(1)),
  imageUrl: orNull(WEB_URL),
  taxInclusive: z.boolean().default(true),
  communityGuildId: orNull(TEXT),
  communityRoleId: orNull(TEXT),
  communityRemindersId: orNull(TEXT),
  messengerGroupId: orNull(z.string().regex(/^-\d{1,20}$/, 'must be a negative number as text')),
})
/** Without the defaults, which an update must not bring in. */
const CHANGES = z.object({
  ...Object.fromEntries(
    Object.entries(FIELDS.shape).map(([name, field]) => [
      name,
      (field instanceof z.ZodDefault ? (field.unwrap() as z.ZodType) : field).optional(),
    ]),
  ),
  status: z.enum(['ACTIVE', 'ARCHIVED']).optional(),
})

const LEAST_CARD_CENTS = 200

/** The rules that concern more than one field. */
function checked(product: Product): Product {
  const { priceCents, isCustomPrice, paymentMethods, platform } = product
  const isTooCheap = priceCents !== null && priceCents < LEAST_CARD_CENTS && paymentMethods.includes('CARD')
  const needed = {
    COMMUNITY: ['communityGuildId', 'communityRoleId'],
    MESSENGER: ['messengerGroupId'],
  } as const
  const missing = platform === 'COMMUNITY' || platform === 'MESSENGER' ? needed[platform] : []
  const wrong = [
    ...(priceCents === null && !isCustomPrice ? [{ field: 'priceCents', message: 'is required' }] : []),
    ...(isTooCheap
      ? [{ field: 'priceCents', message: `must be at least ${LEAST_CARD_CENTS} for CARD` }]
      : []),
    ...missing
      .filter((field) => product[field] === null)
      .map((field) => ({ field, message: `is required for ${platform}` })),
    ...(product.acceptedAssets.length === 0
      ? [{ field: 'acceptedAssets', message: 'no accepted chain has any of them' }]
      : []),
  ]
  if (wrong.length > 0) throw invalidFields(...wrong)
  return product
}

/** Symbols are resolved on every accepted chain; a chain that has none of them is dropped. */
function resolved(chains: readonly number[], wanted: readonly string[] | undefined) {
  const assetsOn = (id: number) =>
    Object.keys(CHAINS[id]?.assets ?? {}).filter((one) => wanted?.includes(one) ?? true)
  const acceptedChains = chains.filter((id) => assetsOn(id).length > 0)
  return { acceptedChains, acceptedAssets: [...new Set(acceptedChains.flatMap(assetsOn))] }
}

function createProduct(world: World, fields: z.output<typeof FIELDS>): Product {
  const at = world.tick()
  const product = {
    ...fields,
    ...resolved(fields.acceptedChains, fields.acceptedAssets),
    // A messenger's bot has to be set up first.
    status: fields.platform === 'MESSENGER' ? 'PENDING' : 'ACTIVE',
    ...{ id: world.makeId('pro'), createdAt: at, updatedAt: at },
  } as const
  return world.put('product', checked(product))
}

function updateProduct(world: World, product: Product, body: object): Product {
  const changes = given(body) as Partial<Product>
  if (changes.frequencyInDays === null && product.frequencyInDays !== null) {
    throw new ServiceError(
      'RECURRING_REQUIRES_INTERVAL',
      'A recurring product keeps an interval: send frequencyInDays.',
    )
  }
  const changed = { ...product, ...changes, updatedAt: world.tick() }
  return world.put(
    'product',
    checked({ ...changed, ...resolved(changed.acceptedChains, changed.acceptedAssets) }),
  )
}

const named = (world: World, id: string | undefined) => found(world, 'product', id, 'PRODUCT_NOT_FOUND')

/** What was deleted is kept for its subscriptions, and in no list. */
const listed = (world: World, before: number | undefined) =>
  world.placed('product', {}, { before }).filter(({ item }) => item.status !== 'ARCHIVED')

const made = { status: 201, body: FIELDS }

export const PRODUCT_OPERATIONS: readonly Operation[] = [
  operation('POST /v3/products', (world, { body }) => productView(createProduct(world, body)), made),
  operation(
    'GET /v3/products',
    (world, { query }) => cursorPage(query, ({ before }) => listed(world, before), productView),
    { query: CURSOR_QUERY },
  ),
  operation('GET /v3/products/:id', (world, { params }) => productView(named(world, params.id))),
  operation(
    'PATCH /v3/products/:id',
    (world, { params, body }) => productView(updateProduct(world, named(world, params.id), body)),
    { body: CHANGES },
  ),
  operation(
    'DELETE /v3/products/:id',
    (world, { params }) =>
      void world.put('product', { ...named(world, params.id), status: 'ARCHIVED', updatedAt: world.tick() }),
    { status: 204 },
  ),
  operation(
    'POST /api/product/create',
    (world, { body }) => legacyProductView(createProduct(world, body)),
    made,
  ),
  operation(
    'PATCH /api/product/:productId',
    (world, { params, body }) =>
      legacyProductView(updateProduct(world, named(world, params.productId), body)),
    { body: CHANGES },
  ),
  operation(
    'GET /api/product/all',
    (world, { query }) => recordPage(world, 'product', {}, query, legacyProductView),
    { query: PAGE_QUERY },
  ),
  operation('GET /api/product/:productId', (world, { params }) =>
    legacyProductView(named(world, params.productId)),
  ),
]
