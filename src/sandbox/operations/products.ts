import { z } from 'zod'
import { refuse, refuseFields } from '../codes.js'
import { CURRENCIES, type Product } from '../model.js'
import { CHAIN_IDS, CHAINS } from '../pricing.js'
import { productFields, productView } from '../views-v3.js'
import { changesOf, NAME, orNull, PRICE, TEXT, WEB_URL } from './fields.js'
import { type Call, listing, named, operation, updated } from './operation.js'

const FIELDS = z.object({
  name: NAME.min(1).max(100),
  description: orNull(z.string().max(500)),
  priceCents: orNull(PRICE.transform(Number)),
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
const CHANGES = changesOf(FIELDS.extend({ status: z.enum(['ACTIVE', 'ARCHIVED']) }))

const LEAST_CARD_CENTS = 200

/** The rules that concern more than one field. */
function checked(product: Product): Product {
  const { priceCents, isCustomPrice, paymentMethods, platform, acceptedAssets } = product
  const isTooCheap = priceCents !== null && priceCents < LEAST_CARD_CENTS && paymentMethods.includes('CARD')
  const isCommunity = platform === 'COMMUNITY'
  const isMessenger = platform === 'MESSENGER'
  const rules: readonly (readonly [isBroken: boolean, field: string, message: string])[] = [
    [priceCents === null && !isCustomPrice, 'priceCents', 'is required'],
    [isTooCheap, 'priceCents', `must be at least ${LEAST_CARD_CENTS} for CARD`],
    [isCommunity && product.communityGuildId === null, 'communityGuildId', 'is required for COMMUNITY'],
    [isCommunity && product.communityRoleId === null, 'communityRoleId', 'is required for COMMUNITY'],
    [isMessenger && product.messengerGroupId === null, 'messengerGroupId', 'is required for MESSENGER'],
    [acceptedAssets.length === 0, 'acceptedAssets', 'no accepted chain has any of them'],
  ]
  const broken = rules.filter(([isBroken]) => isBroken)
  if (broken.length > 0) refuseFields(broken.map(([, field, message]) => ({ field, message })))
  return product
}

/** Symbols are resolved on every accepted chain; a chain that has none of them is dropped. */
function resolved(chains: readonly number[], wanted: readonly string[] | undefined) {
  const assetsOn = (id: number) =>
    Object.keys(CHAINS[id]?.assets ?? {}).filter((one) => wanted?.includes(one) ?? true)
  const acceptedChains = chains.filter((id) => assetsOn(id).length > 0)
  return { acceptedChains, acceptedAssets: [...new Set(acceptedChains.flatMap(assetsOn))] }
}

function createProduct({ world, input }: Call<typeof FIELDS>): Product {
  const at = world.tick()
  const product: Product = {
    ...input,
    ...resolved(input.acceptedChains, input.acceptedAssets),
    id: world.makeId('pro'),
    // A messenger's bot has to be set up first.
    status: input.platform === 'MESSENGER' ? 'PENDING' : 'ACTIVE',
    createdAt: at,
    updatedAt: at,
  }
  return world.put('product', checked(product))
}

function updateProduct(call: Call<typeof CHANGES>): Product {
  const product = productNamed(call)
  const changed = updated(product, call.input)
  if (changed.frequencyInDays === null && product.frequencyInDays !== null) {
    refuse('RECURRING_REQUIRES_INTERVAL', 'A recurring product keeps an interval: send frequencyInDays.')
  }
  const assets = resolved(changed.acceptedChains, changed.acceptedAssets)
  return call.world.put('product', checked({ ...changed, ...assets, updatedAt: call.world.tick() }))
}

/** What is deleted stays for its subscriptions, and in v2. */
function archiveProduct(call: Call): void {
  call.world.put('product', { ...productNamed(call), status: 'ARCHIVED', updatedAt: call.world.tick() })
}

export const productNamed = named('product', 'PRODUCT_NOT_FOUND')
const isListed = ({ status }: Product): boolean => status !== 'ARCHIVED'
const create = { status: 201, input: FIELDS }
const update = { input: CHANGES }

export const PRODUCT_OPERATIONS = [
  operation('POST /v3/products', create, createProduct, productView),
  listing('GET /v3/products', { kind: 'product', view: productView, only: isListed }),
  operation('GET /v3/products/:id', {}, productNamed, productView),
  operation('PATCH /v3/products/:id', update, updateProduct, productView),
  operation('DELETE /v3/products/:id', { status: 204 }, archiveProduct),

  operation('POST /api/product/create', create, createProduct, productFields),
  listing('GET /api/product/all', { kind: 'product', view: productFields }),
  operation('GET /api/product/:productId', {}, productNamed, productFields),
  operation('PATCH /api/product/:productId', update, updateProduct, productFields),
]
