import { setImmediate as turn } from 'node:timers/promises'
import { z } from 'zod'
import type { Entitlement } from '../entitlements/model.js'
import type { Environment } from '../provider/event.js'
import { readJson, requireJson } from './body.js'
import { type CustomerDeps, idSchema, readQuestion } from './customer-questions.js'
import { isoOrNull } from './entitlement-json.js'
import { ENVIRONMENT_ONLY } from './query.js'
import { requireMethod } from './raw-route.js'
import type { RawHandler } from './route.js'
import { sendJson } from './send.js'

/** Enough for a page of any app, and bounds what one request can cost. */
const MAX_CHECKS = 1_000

const checkSchema = z
  .strictObject({ customerId: idSchema.optional(), externalRef: idSchema.optional(), productId: idSchema })
  .refine(({ customerId, externalRef }) => (customerId === undefined) !== (externalRef === undefined), {
    error: 'needs exactly one of customerId and externalRef',
  })
type Check = z.infer<typeof checkSchema>

const bodySchema = z.strictObject({
  checks: z.array(checkSchema).min(1, 'is empty').max(MAX_CHECKS, `holds more than ${MAX_CHECKS} checks`),
})

/** Customers read at once: in some milliseconds, for which nobody else is answered. */
const CUSTOMERS_AT_ONCE = 100

/** Whether one customer may use one product. */
interface Standing {
  readonly customerId: string
  readonly active: boolean
  /** Epoch milliseconds; null while no end is known, and for a product never granted. */
  readonly until: number | null
}

/**
 * POST /entitlements/check: many yes-or-no questions at once, answered in their order. Of several customers with one
 * reference, the one whose access lasts longest answers for all. A customer is read once, however often they are
 * asked about: thousands may share one reference.
 */
export function checkEntitlements(deps: CustomerDeps): RawHandler {
  const { findByReferences, readAccesses } = deps.customers

  /** Of each customer, the entitlements to these products. */
  async function readAll(
    environment: Environment,
    customerIds: readonly string[],
    productIds: ReadonlySet<string>,
  ) {
    const byCustomer = new Map<string, readonly Entitlement[]>()
    for (let i = 0; i < customerIds.length; i += CUSTOMERS_AT_ONCE) {
      if (i > 0) await turn()
      const some = customerIds.slice(i, i + CUSTOMERS_AT_ONCE)
      const answers = await readAccesses({ environment, customerIds: some, at: null })
      for (const { customerId, entitlements } of answers) {
        const own = entitlements.filter(({ productId }) => productIds.has(productId))
        byCustomer.set(customerId, own)
      }
    }
    return byCustomer
  }

  return async (req, res) => {
    requireMethod(req, res, 'POST')
    const { environment } = readQuestion(req, deps, ENVIRONMENT_ONLY)
    requireJson(req)
    const { checks } = await readJson(req, bodySchema)

    const references = [...new Set(checks.flatMap(({ externalRef }) => externalRef ?? []))]
    const byReference = await findByReferences({ environment, references })
    const asked = checks.flatMap(({ customerId }) => customerId ?? [])
    const customerIds = new Set([...asked, ...byReference.values()].flat())
    const productIds = new Set(checks.map(({ productId }) => productId))
    const entitlementsOf = await readAll(environment, [...customerIds], productIds)

    const bests = new Map<string, Best>()
    for (const customerId of new Set(asked))
      bests.set(keyOf({ customerId }), bestOf([customerId], entitlementsOf))
    for (const [externalRef, customerIds] of byReference) {
      bests.set(keyOf({ externalRef }), bestOf(customerIds, entitlementsOf))
      await turn()
    }
    const results = checks.map((check) => {
      const { productId } = check
      const { first = null, byProduct } = bests.get(keyOf(check)) ?? NOBODY
      const { customerId, active, until } = byProduct.get(productId) ?? notGranted(first)
      return { customerId, productId, active, until: isoOrNull(until) }
    })
    sendJson(res, 200, { results }, { 'Cache-Control': 'no-store' })
  }
}

/** What answers for a customer, or for all with one reference. */
interface Best {
  /** Answers for a product that none of them was ever granted. */
  readonly first: string | undefined
  readonly byProduct: ReadonlyMap<string, Standing>
}

const NOBODY: Best = { first: undefined, byProduct: new Map() }

function bestOf(
  customerIds: readonly string[],
  entitlementsOf: ReadonlyMap<string, readonly Entitlement[]>,
): Best {
  const [first] = customerIds
  const byProduct = new Map<string, Standing>()
  for (const customerId of customerIds) {
    for (const { productId, active, until } of entitlementsOf.get(customerId) ?? []) {
      // The first customer takes part in each comparison, whatever they were granted.
      const known =
        byProduct.get(productId) ?? (first === customerId ? null : notGranted(first ?? customerId))
      const own = { customerId, active, until }
      byProduct.set(productId, known === null ? own : longerLasting(known, own))
    }
  }
  return { first, byProduct }
}

function notGranted<Id extends string | null>(customerId: Id) {
  return { customerId, active: false, until: null }
}

/** By whom a check is about. */
function keyOf({ customerId, externalRef }: Partial<Check>): string {
  return customerId === undefined ? `externalRef ${externalRef}` : `customerId ${customerId}`
}

/** The first of two that are alike. */
function longerLasting(a: Standing, b: Standing): Standing {
  if (a.active !== b.active) return a.active ? a : b
  return endOf(b) > endOf(a) ? b : a
}

function endOf({ active, until }: Standing): number {
  return until ?? (active ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY)
}
