import { type AccessDeps, readQuestion } from './access-question.js'
import { type KeptAnswers, renderAnswer } from './kept-answers.js'
import type { RawHandler } from './raw-handler.js'
import { requireMethod } from './route.js'
import { sendTaggedJson } from './send-tagged.js'

export interface EntitlementsDeps extends AccessDeps {
  readonly keptAnswers: KeptAnswers
  /** Epoch milliseconds. */
  readonly clock: () => number
}

/** GET /entitlements/:customerId. What is asked again while nothing has changed is answered from memory. */
export function getEntitlements(deps: EntitlementsDeps): RawHandler<'customerId'> {
  const { keptAnswers, clock, readAccess } = deps
  return async (req, res, { customerId }) => {
    requireMethod(req, res, 'GET', 'HEAD')
    const question = readQuestion(req, customerId, deps)
    const now = clock()
    const kept = question.at === null ? keptAnswers.find(question.environment, customerId, now) : null
    if (kept !== null) return sendTaggedJson(res, kept.tag, () => kept.text(now))
    const answer = await readAccess(question)
    const rendered = question.at === null ? keptAnswers.keep(answer) : renderAnswer(answer)
    sendTaggedJson(res, rendered.tag, () => rendered.text(answer.asOf))
  }
}
