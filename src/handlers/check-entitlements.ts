import { z } from 'zod'
import type { AccessAnswer } from '../entitlements/answer.js'
import { type CustomerDeps, idSchema, readQuestion } from './customer-questions.js'
import { isoOrNull } from './entitlement-json.js'
import { ENVIRONMENT_ONLY } from './environment.js'
import type { RawHandler } from './raw-handler.js'
import { readJson } from './read-json.js'
import { requireJson } from './require-json.js'
import { requireMethod } from './route.js'
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

/** Whether one customer may use one product. */
interface Standing {
  /** Null where nobody has the reference. */
  readonly customerId: string | null
  readonly active: boolean
  /** Epoch milliseconds; null while no end is known, and for a product never granted. */
  readonly until: number | null
}

const NOBODY: Standing = { customerId: null, active: false, until: null }

/**
 * POST /entitlements/check: many yes-or-no questions at once, answered in their order, and all of one instant.
 * Of several customers with one reference, the one whose access lasts longest answers for all.
 */
export function checkEntitlements(deps: CustomerDeps): RawHandler {
  const { findByReferences, readAccesses } = deps.customers
  return async (req, res) => {
    requireMethod(req, res, 'POST')
    const { environment } = readQuestion(req, deps, ENVIRONMENT_ONLY)
    requireJson(req)
    const { checks } = await readJson(req, bodySchema)

    const references = [...new Set(checks.flatMap(({ externalRef }) => externalRef ?? []))]
    const byReference = await findByReferences({ environment, references })
    const customersOf = ({ customerId, externalRef }: Check): readonly string[] =>
      customerId !== undefined ? [customerId] : (byReference.get(externalRef ?? '') ?? [])
    const customerIds = [...new Set(checks.flatMap(customersOf))]
    const answers = await readAccesses({ environment, customerIds, at: null })
    const byCustomer = new Map(answers.map((answer) => [answer.customerId, answer]))

    const results = checks.map((check) => {
      const { productId } = check
      const standings = customersOf(check).map((id) => standingOf(id, byCustomer.get(id), productId))
      const { customerId, active, until } = standings.reduce(longerLasting, NOBODY)
      return { customerId, productId, active, until: isoOrNull(until) }
    })
    sendJson(res, 200, { results }, { 'Cache-Control': 'no-store' })
  }
}

function standingOf(customerId: string, answer: AccessAnswer | undefined, productId: string): Standing {
  const entitlement = answer?.entitlements.find((one) => one.productId === productId)
  return { customerId, active: entitlement?.active ?? false, until: entitlement?.until ?? null }
}

/** The first of two that are alike. */
function longerLasting(a: Standing, b: Standing): Standing {
  if (a.customerId === null) return b
  if (a.active !== b.active) return a.active ? a : b
  return endOf(b) > endOf(a) ? b : a
}

function endOf({ active, until }: Standing): number {
  return until ?? (active ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY)
}
