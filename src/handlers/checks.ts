/* Many yes-or-no questions in one request: may this customer use this product, or have this feature? */

import { setImmediate as turn } from 'node:timers/promises'
import { z } from 'zod'
import { longerLasting } from '../entitlements/entitlement.js'
import type { BriefAccess, Catalog, FeatureAccess, ProductAccess } from '../entitlements/features.js'
import type { Environment } from '../provider/event.js'
import { readGrants } from '../store/access.js'
import { findCustomersByReferences } from '../store/customers.js'
import { knownProducts } from '../store/entitlements.js'
import { briefAccess, markUnknown, NO_ACCESS, unknown } from './answers.js'
import { idText } from './body.js'
import { type MountDeps, READ, route } from './route.js'

/** Enough for a page of any app; bounds the cost of one request. */
const MAX_CHECKS = 1_000
/** Customers read at once: a few milliseconds that block all other requests. */
const CUSTOMERS_AT_ONCE = 500

export const check = z
  .strictObject({
    customerId: idText.optional(),
    externalRef: idText.optional(),
    productId: idText.exactOptional(),
    feature: idText.exactOptional(),
  })
  .refine(({ customerId, externalRef }) => (customerId === undefined) !== (externalRef === undefined), {
    error: 'needs exactly one of customerId and externalRef',
  })
  .refine(({ productId, feature }) => (productId === undefined) !== (feature === undefined), {
    error: 'needs exactly one of productId and feature',
  })
type Check = z.infer<typeof check>

/** Whether one customer may use one product, or has one feature. */
interface CustomerAccess {
  readonly customerId: string
  readonly access: BriefAccess
}

export const checkRoute = route('POST /entitlements/check', {
  operationId: 'checkEntitlements',
  summary: 'Many yes-or-no questions at once, answered in order.',
  ...READ,
  body: z.strictObject({
    checks: z.array(check).min(1, 'is empty').max(MAX_CHECKS, `holds more than ${MAX_CHECKS} checks`),
  }),
  bodyType: 'json',
  answer: z.object({
    results: z.array(
      z.object({
        customerId: z.string().nullable(),
        productId: z.string().exactOptional(),
        feature: z.string().exactOptional(),
        ...briefAccess.shape,
        ...unknown,
      }),
    ),
  }),
  handle: ({ body, environment }, deps) => answerChecks(body.checks, environment, deps),
})

/** Each customer is read once, however many checks name them: thousands may share one reference. */
async function answerChecks(checks: readonly Check[], environment: Environment, deps: MountDeps) {
  const { db, clock } = deps
  const catalog = deps.catalog()
  const references = [...new Set(checks.flatMap(({ externalRef }) => externalRef ?? []))]
  const byReference = await findCustomersByReferences(db, environment, deps.reference, references)
  const asked = checks.flatMap(({ customerId }) => customerId ?? [])
  const customerIds = [...new Set([...asked, ...byReference.values()].flat())]
  const named = new Set(checks.flatMap(({ productId }) => productId ?? []))
  const features = new Set(checks.flatMap(({ feature }) => feature ?? []))
  const needed = new Set([...named, ...[...features].flatMap(catalog.productsOf)])
  const grantsOf = new Map<string, readonly ProductAccess[]>()
  for (let i = 0; i < customerIds.length; i += CUSTOMERS_AT_ONCE) {
    if (i > 0) await turn()
    const some = customerIds.slice(i, i + CUSTOMERS_AT_ONCE)
    for (const [customerId, grants] of await readGrants(db, clock, { environment, customerIds: some })) {
      const own = grants.filter(({ productId }) => needed.has(productId))
      grantsOf.set(customerId, own)
    }
  }
  const granted = new Set([...grantsOf.values()].flat().map(({ productId }) => productId))
  const doubted = [...named].filter((id) => !catalog.hasProduct(id) && !granted.has(id))
  const known = await knownProducts(db, environment, doubted)
  const unknowns = new Set([
    ...doubted.filter((id) => !known.has(id)).map((productId) => nameOf({ productId })),
    ...[...features]
      .filter((id) => catalog.productsOf(id).length === 0)
      .map((feature) => nameOf({ feature })),
  ])
  return { results: await resultsOf(checks, { grantsOf, byReference, unknowns }, catalog) }
}

/** What the store says of the customers whom some checks name. */
interface CheckedAccess {
  /** By customer id. */
  readonly grantsOf: ReadonlyMap<string, readonly ProductAccess[]>
  /** The ids of the customers with each reference. */
  readonly byReference: ReadonlyMap<string, readonly string[]>
  /** The products and features that nobody knows, by `nameOf`. */
  readonly unknowns: ReadonlySet<string>
}

/** If several customers share a reference, the longest-lasting access is the answer. */
export async function resultsOf(
  checks: readonly Check[],
  { grantsOf, byReference, unknowns }: CheckedAccess,
  { accessBy }: Pick<Catalog, 'accessBy'>,
) {
  const asksForFeatures = checks.some(({ feature }) => feature !== undefined)
  const featuresBy = new Map<string, readonly FeatureAccess[]>()
  const featuresOf = (customerId: string): readonly FeatureAccess[] => {
    const own = featuresBy.get(customerId) ?? accessBy(grantsOf.get(customerId) ?? [])
    featuresBy.set(customerId, own)
    return own
  }
  const accessesOf = (customerId: string) => [
    ...(grantsOf.get(customerId) ?? []).map((one) => [nameOf(one), one] as const),
    ...(asksForFeatures ? featuresOf(customerId) : []).map(
      (one) => [nameOf({ feature: one.id }), one] as const,
    ),
  ]
  /** By reference, for those that several customers share, perhaps thousands. */
  const bests = new Map<string, ReadonlyMap<string, CustomerAccess>>()
  for (const [externalRef, ids] of byReference) {
    if (ids.length < 2) continue
    await turn()
    bests.set(externalRef, bestOf(ids, accessesOf))
  }

  const grantOf = (customerId: string, { productId, feature }: Check) =>
    feature === undefined
      ? grantsOf.get(customerId)?.find((one) => one.productId === productId)
      : featuresOf(customerId).find((one) => one.id === feature)
  return checks.map((one) => {
    const { externalRef = '' } = one
    const first = one.customerId ?? byReference.get(externalRef)?.[0] ?? null
    const shared = bests.get(externalRef)
    const best = shared?.get(nameOf(one))
    const own = (shared === undefined && first !== null ? grantOf(first, one) : best?.access) ?? NO_ACCESS
    const isKnown = unknowns.size === 0 || !unknowns.has(nameOf(one))
    return { ...own, ...one, customerId: best?.customerId ?? first, ...markUnknown(isKnown) }
  })
}

/** The best answer of these customers, by the name of a product or feature. */
function bestOf(
  customerIds: readonly string[],
  accessesOf: (customerId: string) => readonly (readonly [string, BriefAccess])[],
): ReadonlyMap<string, CustomerAccess> {
  const best = new Map<string, CustomerAccess>()
  for (const customerId of customerIds) {
    for (const [name, access] of accessesOf(customerId)) {
      const known = best.get(name)?.access
      if (known === undefined || longerLasting(known, access) !== known)
        best.set(name, { customerId, access })
    }
  }
  return best
}

/** Identifies the product or feature of a check. */
function nameOf({
  productId,
  feature,
}: {
  readonly productId?: string | undefined
  readonly feature?: string | undefined
}): string {
  return feature === undefined ? `productId ${productId}` : `feature ${feature}`
}
