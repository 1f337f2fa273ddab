import fc from 'fast-check'
import { expect, it } from 'vitest'
import { catalogOf } from '../../src/entitlements/features.js'
import type { Entitlement } from '../../src/entitlements/model.js'

const PRODUCTS = ['pro_1', 'pro_2', 'pro_3'] as const
const FEATURES = ['api', 'audit', 'export'] as const

const configs = fc.uniqueArray(
  fc.record({ id: fc.constantFrom(...PRODUCTS), features: fc.array(fc.constantFrom(...FEATURES)) }),
  { selector: ({ id }) => id },
)

/** In order of product, as answers have them. */
const entitlementLists = fc.subarray([...PRODUCTS, 'pro_z']).chain((ids) =>
  fc.tuple(
    ...ids.map((productId) =>
      fc.record({ active: fc.boolean(), until: fc.option(fc.nat(9)) }).map(
        (one): Entitlement => ({
          ...{ productId, status: 'active', since: null, pastDue: false, sources: [] },
          ...one,
        }),
      ),
    ),
  ),
)

it('a feature is the union of the products that give it', () => {
  fc.assert(
    fc.property(configs, entitlementLists, (config, entitlements) => {
      const gives = (productId: string, feature: string) =>
        config.some((product) => product.id === productId && product.features.some((one) => one === feature))
      const answer = {
        customerId: 'cus_1',
        environment: 'live',
        asOf: 0,
        validUntil: null,
        cursor: '',
      } as const
      const all = { ...answer, blocked: false, entitlements }
      const { withFeatures, featureIn } = catalogOf(config)
      const expected = FEATURES.map((id) => {
        const giving = entitlements.filter(({ productId }) => gives(productId, id))
        const active = giving.filter((one) => one.active)
        const isActive = active.length > 0
        const ends = (isActive ? active : giving).flatMap(({ until }) => until ?? [])
        const isOpen = active.some(({ until }) => until === null)
        const productIds = isActive
          ? active.map(({ productId }) => productId)
          : PRODUCTS.filter((one) => gives(one, id))
        return {
          id,
          active: isActive,
          until: isOpen || ends.length === 0 ? null : Math.max(...ends),
          productIds,
        }
      })
      expect(FEATURES.map((id) => featureIn(all, id))).toEqual(expected.map((one) => ({ ...answer, ...one })))
      const given = expected.filter(({ id }) => entitlements.some(({ productId }) => gives(productId, id)))
      expect(withFeatures(all).features).toEqual(given)
    }),
  )
})
