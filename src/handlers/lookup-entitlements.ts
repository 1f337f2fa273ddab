import { z } from 'zod'
import { type CustomerDeps, type CustomerDetail, idSchema, readQuestion } from './customer-questions.js'
import { answerPage } from './find-entitlements.js'
import { readPage, withOneMore } from './page.js'
import { readInstant } from './query.js'
import type { RawHandler } from './raw-handler.js'
import { readJson } from './read-json.js'
import { requireJson } from './require-json.js'
import { requireMethod } from './route.js'
import { sendJson } from './send.js'

const PARAMETERS = ['environment', 'at', 'limit', 'cursor'] as const

const lookupSchema = z
  .strictObject({
    email: idSchema.optional(),
    communityId: idSchema.optional(),
    messengerId: idSchema.optional(),
  })
  .transform((given, context): CustomerDetail => {
    const { email, communityId, messengerId } = given
    const [lookup, ...others] = [
      ...(email === undefined ? [] : [{ email }]),
      ...(communityId === undefined ? [] : [{ communityId }]),
      ...(messengerId === undefined ? [] : [{ messengerId }]),
    ]
    if (lookup !== undefined && others.length === 0) return lookup
    context.addIssue('needs exactly one of email, communityId and messengerId')
    return z.NEVER
  })

/**
 * POST /entitlements/lookup: what the customers may use who have this email, community account or messenger
 * account, in a body because URLs end up in logs.
 */
export function lookupEntitlements(deps: CustomerDeps): RawHandler {
  const { findByDetail } = deps.customers
  return async (req, res) => {
    requireMethod(req, res, 'POST')
    const { environment, query } = readQuestion(req, deps, PARAMETERS)
    const page = readPage(query)
    const at = readInstant(query, 'at')
    requireJson(req)
    const lookup = await readJson(req, lookupSchema)
    const found = await findByDetail({ environment, lookup, page: withOneMore(page) })
    sendJson(res, 200, await answerPage(deps, { environment, found, page, at }), {
      'Cache-Control': 'no-store',
    })
  }
}
