/* The products of the config, and who has access to them. */

import { z } from 'zod'
import type { Environment } from '../provider/event.js'
import { compareText } from '../provider/order.js'
import { countProductCustomers, readProductCustomers } from '../store/access.js'
import { entitlement, environment as environmentAnswer } from './answers.js'
import { firstOf, idPlace, PAGE, pageOf } from './query.js'
import { type MountDeps, READ, type Route, route } from './route.js'

export interface ProductDeps extends MountDeps {
  /** The configured ones. Called each time, since a reload may change them. */
  readonly products: () => readonly {
    readonly id: string
    readonly name: string | null
    readonly features: readonly string[]
    /** Roles and groups by the names that answers have for them. */
    readonly targets: readonly { readonly environment: Environment; readonly target: string }[]
  }[]
}

export const productAnswer = z.object({
  productId: z.string(),
  /** Null: the config has none, or does not have the product. */
  name: z.string().nullable(),
  configured: z.boolean(),
  features: z.array(z.string()),
  /** Roles and groups in this environment that follow access to the product. */
  targets: z.array(z.string()),
  /** Customers with access, as last written down: an end by the clock is written within a minute. */
  active: z.int(),
})

export const productQuestions: readonly Route<ProductDeps>[] = [
  route('GET /products', {
    operationId: 'listProducts',
    summary: 'The products of the config and those that customers have, with how many have access now.',
    ...READ,
    answer: z.object({ environment: environmentAnswer, products: z.array(productAnswer) }),
    async handle({ environment }, { db, products }: ProductDeps) {
      const configured = products()
      const counted = await countProductCustomers(db, environment)
      const others = [...counted.keys()].filter((id) => configured.every((one) => one.id !== id))
      return {
        environment,
        products: [
          ...configured.map(({ id, name, features, targets }) => ({
            productId: id,
            name,
            configured: true,
            features,
            targets: targets.filter((one) => one.environment === environment).map(({ target }) => target),
            active: counted.get(id) ?? 0,
          })),
          ...others.sort(compareText).map((productId) => ({
            productId,
            name: null,
            configured: false,
            features: [],
            targets: [],
            active: counted.get(productId) ?? 0,
          })),
        ],
      }
    },
  }),
  route('GET /products/:productId/customers', {
    operationId: 'listProductCustomers',
    summary: 'Customers with access to a product now, by id.',
    ...READ,
    query: z.object(PAGE),
    answer: pageOf(z.object({ customerId: z.string(), ...entitlement.shape }), idPlace),
    async handle({ params, query: { limit, cursor: after = '' }, environment }, { db, clock }) {
      const page = { after, limit: limit + 1 }
      const found = await readProductCustomers(db, clock, environment, params.productId, page)
      const items = found.map((one) => ({ customerId: one.customerId, ...one.entitlement }))
      return firstOf(items, limit, ({ customerId }) => customerId)
    },
  }),
]
