import type { Explanation } from '../entitlements/explain.js'
import { explanationJson } from './explanation-json.js'
import { type AccessDeps, type AccessQuestion, readQuestion } from './get-entitlements.js'
import type { RawHandler } from './raw-handler.js'
import { requireMethod } from './route.js'
import { sendJson } from './send.js'

export interface ExplanationQuestion extends AccessQuestion {
  readonly productId: string
}

export interface ExplanationDeps extends Pick<AccessDeps, 'authenticate' | 'environments'> {
  /** Rejects with `store_unavailable` where the store can't tell. */
  readonly readExplanation: (question: ExplanationQuestion) => Promise<Explanation>
}

/**
 * GET /entitlements/:customerId/:productId/explanation. Nothing known of the customer is an answer, not a 404.
 */
export function getExplanation(deps: ExplanationDeps): RawHandler<'customerId' | 'productId'> {
  return async (req, res, { customerId, productId }) => {
    requireMethod(req, res, 'GET', 'HEAD')
    const question = readQuestion(req, customerId, deps)
    sendJson(res, 200, explanationJson(await deps.readExplanation({ ...question, productId })))
  }
}
