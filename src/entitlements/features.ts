/* Features: what an app gates on. A customer has one by any product that gives it; the config says which ones do. */

import { compareText } from '../provider/order.js'
import { latestUntil, partOf } from './entitlement.js'
import type { AccessAnswer, AccessSnapshot, Entitlement } from './model.js'

/** The answer to a yes-or-no question about a product or a feature. */
export type BriefAccess = Pick<AccessSnapshot, 'active' | 'until'>

/** Whether a customer has a feature: whether any product that gives it is active. */
export interface FeatureAccess extends BriefAccess {
  readonly id: string
  /** The active products that give it; if there are none, all that would. In order of id. */
  readonly productIds: readonly string[]
}

/** An answer with each feature that any product in it gives, active or not. */
export interface FeaturedAnswer extends AccessAnswer {
  readonly features: readonly FeatureAccess[]
}

/** Access to one product. */
export type ProductAccess = BriefAccess & Pick<Entitlement, 'productId'>

export type Catalog = ReturnType<typeof catalogOf>

/** All products of the config, and the features that each one gives. */
export function catalogOf(
  products: readonly { readonly id: string; readonly features: readonly string[] }[],
) {
  const byProduct = new Map(
    products.map(({ id, features }) => [id, [...new Set(features)].sort(compareText)]),
  )
  const byFeature = new Map<string, readonly string[]>()
  for (const [id, features] of [...byProduct].sort(([a], [b]) => compareText(a, b))) {
    for (const feature of features) byFeature.set(feature, [...(byFeature.get(feature) ?? []), id])
  }
  const featuresOf = (productId: string): readonly string[] => byProduct.get(productId) ?? []
  const productsOf = (feature: string): readonly string[] => byFeature.get(feature) ?? []

  /** Lasts as long as the longest-lasting active product; if none is active, it ended with the last one. */
  function accessTo(id: string, entitlements: readonly ProductAccess[]): FeatureAccess {
    const own = entitlements.filter(({ productId }) => featuresOf(productId).includes(id))
    const active = own.filter((one) => one.active)
    const isActive = active.length > 0
    const until = latestUntil(isActive ? active : own.filter((one) => one.until !== null))
    const productIds = isActive ? active.map(({ productId }) => productId) : productsOf(id)
    return { id, active: isActive, until, productIds }
  }

  /** Each feature that any of these products gives, in order of id. */
  function accessBy(entitlements: readonly ProductAccess[]): readonly FeatureAccess[] {
    const ids = new Set(entitlements.flatMap(({ productId }) => featuresOf(productId)))
    return [...ids].sort(compareText).map((id) => accessTo(id, entitlements))
  }

  return {
    hasProduct: (id: string) => byProduct.has(id),
    featuresOf,
    productsOf,
    accessBy,
    withFeatures: (answer: AccessAnswer): FeaturedAnswer => ({
      ...answer,
      features: accessBy(answer.entitlements),
    }),
    /** The answer for one feature alone. */
    featureIn(answer: AccessAnswer, id: string) {
      const own = answer.entitlements.filter(({ productId }) => featuresOf(productId).includes(id))
      return { ...partOf(answer, own), ...accessTo(id, own) }
    },
  }
}
