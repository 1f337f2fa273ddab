import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Explanation } from '../entitlements/explain.js'
import type { AccessAnswer, Entitlement } from '../entitlements/model.js'
import type { Environment } from '../provider/event.js'
import type { AccessQuery } from '../store/access.js'
import type { ExplanationQuery } from '../store/account.js'
import type { Authenticate } from './authenticate.js'
import { entitlementJson, explanationJson } from './entitlement-json.js'
import { type KeptAnswers, renderAnswer } from './kept-answers.js'
import { chooseEnvironment, queryOf, readEnvironment, readInstant, readQuery } from './query.js'
import { requireMethod } from './raw-route.js'
import type { RawHandler } from './route.js'
import { sendJson, sendTagged, sendTaggedJson } from './send.js'

const PARAMETERS = ['environment', 'at'] as const

/** The queries that nearly every request has, with the environment that each names: these are not parsed. */
const PLAIN_QUERIES: ReadonlyMap<string, Environment | null> = new Map([
  ['', null],
  ['environment=live', 'live'],
  ['environment=sandbox', 'sandbox'],
])

/** What the entitlement routes need. */
export interface AccessDeps {
  readonly authenticate: Authenticate
  /** The environments of the configured endpoints; asked each time, since a reload may change them. */
  readonly environments: () => readonly Environment[]
  /** Rejects with `store_unavailable` where the store can't tell: never with an empty answer. */
  readonly readAccess: (question: AccessQuery) => Promise<AccessAnswer>
}

export interface EntitlementsDeps extends AccessDeps {
  readonly keptAnswers: KeptAnswers
  /** Epoch milliseconds. */
  readonly clock: () => number
}

/** GET /entitlements/:customerId. What is asked again while nothing has changed is answered from memory. */
export function getEntitlements(deps: EntitlementsDeps): RawHandler<'customerId'> {
  const { keptAnswers, clock, readAccess } = deps
  const answerFromStore = async (res: ServerResponse, question: AccessQuery): Promise<void> => {
    const answer = await readAccess(question)
    const rendered = question.at === null ? keptAnswers.keep(answer) : renderAnswer(answer)
    sendTaggedJson(res, rendered.tag, rendered.text(answer.asOf))
  }
  return (req, res, { customerId }) => {
    requireMethod(req, res, 'GET', 'HEAD')
    const question = readQuestion(req, customerId, deps)
    const now = clock()
    const kept = question.at === null ? keptAnswers.find(question.environment, customerId, now) : null
    if (kept === null) return answerFromStore(res, question)
    sendTaggedJson(res, kept.tag, kept.text(now))
    return undefined
  }
}

export interface EntitlementDeps extends AccessDeps {
  /** What an answer says of one product, be it one that it does not list. */
  readonly entitlementFor: (productId: string, answer: AccessAnswer) => Entitlement
}

/** GET /entitlements/:customerId/:productId. A product never granted is an answer, not a 404. */
export function getEntitlement(deps: EntitlementDeps): RawHandler<'customerId' | 'productId'> {
  return async (req, res, { customerId, productId }) => {
    requireMethod(req, res, 'GET', 'HEAD')
    const answer = await askAccess(req, customerId, deps)
    sendTagged(res, entitlementJson(deps.entitlementFor(productId, answer)))
  }
}

/**
 * Answers the question that a request puts, once its key is seen to have the right to.
 *
 * @throws LatchkeyError `unauthorized`, `forbidden`, `invalid_request`, `store_unavailable`.
 */
async function askAccess(req: IncomingMessage, customerId: string, deps: AccessDeps): Promise<AccessAnswer> {
  return deps.readAccess(readQuestion(req, customerId, deps))
}

/**
 * Reads the question that a request puts, once its key is seen to have the right to.
 *
 * @throws LatchkeyError `unauthorized`, `forbidden`, `invalid_request`.
 */
export function readQuestion(
  req: IncomingMessage,
  customerId: string,
  { authenticate, environments }: Pick<AccessDeps, 'authenticate' | 'environments'>,
): AccessQuery {
  const key = authenticate(req, 'read')
  const named = PLAIN_QUERIES.get(queryOf(req))
  if (named !== undefined) {
    return { environment: chooseEnvironment(named, environments, key), customerId, at: null }
  }
  const query = readQuery(req, PARAMETERS)
  return {
    environment: readEnvironment(query, environments(), key),
    customerId,
    at: readInstant(query, 'at'),
  }
}

export interface ExplanationDeps extends Pick<AccessDeps, 'authenticate' | 'environments'> {
  /** Rejects with `store_unavailable` where the store can't tell. */
  readonly readExplanation: (question: ExplanationQuery) => Promise<Explanation>
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
