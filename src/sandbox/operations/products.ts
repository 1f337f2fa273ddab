import { z } from 'zod'
import { PRODUCT } from '../../provider/requests.js'
import { refuse, refuseFields } from '../codes.js'
import type { Product } from '../model.js'
import { CHAIN_IDS, CHAINS } from '../pricing.js'
import { productFields, productView } from '../views-v3.js'
import type { World } from '../world.js'
import { listing } from './lists.js'
import { actOn, type Call, changesOf, named, operation, updated } from './operation.js'

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
function resolved({ acceptedChains: chains = CHAIN_IDS, acceptedAssets: wanted }: z.output<typeof PRODUCT>) {
  const assetsOn = (id: number) =>
    Object.keys(CHAINS[id]?.assets ?? {}).filter((one) => wanted?.includes(one) ?? true)
  const acceptedChains = chains.filter((id) => assetsOn(id).length > 0)
  return { acceptedChains, acceptedAssets: [...new Set(acceptedChains.flatMap(assetsOn))] }
}

function createProduct({ world, input }: Call<typeof PRODUCT>): Product {
  // A messenger's bot has to be set up first.
  const status = input.platform === 'MESSENGER' ? 'PENDING' : 'ACTIVE'
  return world.put('product', checked({ ...input, ...resolved(input), ...world.fresh('pro'), status }))
}

function updateProduct(world: World, product: Product, input: object): Product {
  const changed = updated(product, input)
  if (changed.frequencyInDays === null && product.frequencyInDays !== null) {
    refuse('RECURRING_REQUIRES_INTERVAL', 'A recurring product keeps an interval: send frequencyInDays.')
  }
  return world.update('product', product, checked({ ...changed, ...resolved(changed) }))
}

/** It stays for its subscriptions, and in v2. */
function deleteProduct(world: World, product: Product): void {
  world.update('product', product, { status: 'ARCHIVED' })
}

export const productNamed = named('product', 'PRODUCT_NOT_FOUND')
const onProduct = actOn(productNamed)
const isListed = ({ status }: Product): boolean => status !== 'ARCHIVED'
const create = { status: 201, input: PRODUCT }
const update = { input: changesOf(PRODUCT.extend({ status: z.enum(['ACTIVE', 'ARCHIVED']) })) }

export const PRODUCT_OPERATIONS = [
  operation('POST /v3/products', create, createProduct, productView),
  listing('GET /v3/products', { kind: 'product', view: productView, only: isListed }),
  operation('GET /v3/products/:id', {}, productNamed, productView),
  onProduct('PATCH /v3/products/:id', update, updateProduct, productView),
  onProduct('DELETE /v3/products/:id', { status: 204 }, deleteProduct),

  operation('POST /api/product/create', create, createProduct, productFields),
  listing('GET /api/product/all', { kind: 'product', view: productFields }),
  operation('GET /api/product/:productId', {}, productNamed, productFields),
  onProduct('PATCH /api/product/:productId', update, updateProduct, productFields),
]
