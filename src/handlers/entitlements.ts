/* What customers may use: by customer, by product, and by reference or contact detail. */

import type { ServerResponse } from 'node:http'
import { z } from 'zod'
import { answerFor } from '../entitlements/entitlement.js'
import type { AccessAnswer } from '../entitlements/model.js'
import { LOOKUP_NAMES, ofEach } from '../provider/accounts.js'
import type { Environment } from '../provider/event.js'
import { type AccessesQuery, type AccessQuery, readAccesses } from '../store/access.js'
import { readExplanation } from '../store/account.js'
import { findCustomers, findCustomersByReference } from '../store/customers.js'
import { knownProducts } from '../store/entitlements.js'
import {
  access,
  byHand,
  endReason,
  entitlement,
  environment,
  featureAccess,
  holdReason,
  instant,
  markUnknown,
  platformCall,
  productAccess,
  rail,
  sourceKey,
} from './answers.js'
import { idText } from './body.js'
import { type KeptAnswers, renderAnswer } from './kept-answers.js'
import { methodNotAllowed } from './mount.js'
import {
  chooseEnvironment,
  firstOf,
  idParameter,
  idPlace,
  instantParameter,
  PAGE,
  pageOf,
  parseParameters,
  queryOf,
  readParameters,
} from './query.js'
import { type MountDeps, type RawHandler, READ, type Route, route } from './route.js'
import { sendTagged } from './send.js'
import type { SyncQuestionDeps } from './sync/deps.js'
import { membership, platform, STATES } from './sync/memberships.js'

export interface EntitlementDeps extends SyncQuestionDeps {
  /** As the store's, but perhaps traced. */
  readonly readAccess: (question: AccessQuery) => Promise<AccessAnswer>
  readonly keptAnswers: KeptAnswers
}

const AT = z.object({ at: instantParameter.optional() })

/** The queries of nearly every request, and the environment that each names: these skip parsing. */
const PLAIN_QUERIES: ReadonlyMap<string, Environment | null> = new Map([
  ['', null],
  ['environment=live', 'live'],
  ['environment=sandbox', 'sandbox'],
])

/** Repeated questions are answered from memory while nothing has changed. */
function answerEntitlements(deps: EntitlementDeps): RawHandler<'customerId'> {
  const { authenticate, endpoints, keptAnswers, clock, catalog, readAccess } = deps
  const readQuestion = (req: Parameters<RawHandler>[0], customerId: string): AccessQuery => {
    const key = authenticate(req, 'read')
    const plain = PLAIN_QUERIES.get(queryOf(req))
    if (plain !== undefined) {
      return { environment: chooseEnvironment(plain, endpoints, key), customerId, at: null }
    }
    const given = readParameters(req, true, AT)
    const environment = chooseEnvironment(given.environment ?? null, endpoints, key)
    return { environment, customerId, at: parseParameters(AT, given).at ?? null }
  }
  const answerFromStore = async (res: ServerResponse, question: AccessQuery): Promise<void> => {
    const answer = catalog().withFeatures(await readAccess(question))
    const rendered = question.at === null ? keptAnswers.keep(answer) : renderAnswer(answer)
    sendTagged(res, rendered.tag, rendered.text(answer.asOf))
  }
  return (req, res, { customerId }) => {
    if (req.method !== 'GET' && req.method !== 'HEAD') throw methodNotAllowed(res, 'GET, HEAD')
    const question = readQuestion(req, customerId)
    const now = clock()
    // A kept answer has the cursor of when it was kept; a caller with a cache of its own needs the newest.
    const mayBeKept = question.at === null && req.headers['cache-control'] !== 'max-age=0'
    const kept = mayBeKept ? keptAnswers.find(question.environment, customerId, now) : null
    if (kept === null) return answerFromStore(res, question)
    sendTagged(res, kept.tag, kept.text(now))
    return undefined
  }
}

/** One reason of an explanation, with its facts: the only numbers among them are instants. */
const reason = z.codec(z.looseObject({ code: z.string() }), z.custom<{ readonly code: string }>(), {
  decode: (json) => json,
  encode: ({ code, ...facts }) => {
    const entries = Object.entries(facts as Readonly<Record<string, unknown>>)
    const texts = entries.map(([name, fact]) => [
      name,
      typeof fact === 'number' ? z.encode(instant, fact) : fact,
    ])
    return { code, ...Object.fromEntries(texts) }
  },
})

const explainedEvent = { id: z.string(), type: z.string(), createdAt: instant, receivedAt: instant }
const sentence = z.string()

export const explanationAnswer = z.object({
  customerId: z.string(),
  productId: z.string(),
  environment,
  asOf: instant,
  entitlement,
  summary: z.string(),
  sources: z.array(
    z.object({
      id: z.string(),
      kind: sourceKey.shape.kind,
      rail,
      customerId: z.string().nullable(),
      intervals: z.array(
        z.object({
          productId: z.string(),
          from: instant,
          until: instant.nullable(),
          reason: endReason.nullable(),
          eventId: z.string(),
        }),
      ),
      events: z.array(
        z.object({
          ...explainedEvent,
          disposition: z.enum(['applied', 'ignored', 'held']),
          /** Of the policy. */
          row: z.object({ rail, on: z.enum(['grant', 'takeBack']) }).nullable(),
          note: reason,
          changes: z.array(reason),
          sentence,
          ...byHand,
        }),
      ),
    }),
  ),
  held: z.array(
    z.object({
      ...explainedEvent,
      /** Null: no event says whose it is, so it may be anybody's. */
      customerId: z.string().nullable(),
      source: sourceKey.nullable(),
      reason: holdReason,
      sentence,
    }),
  ),
  blocks: z.array(
    z.object({
      productId: z.string().nullable(),
      from: instant,
      until: instant.nullable(),
      sentence,
      ...byHand,
    }),
  ),
  erasures: z.array(z.object({ at: instant, eventId: z.string(), sentence })),
  ends: z.array(
    z.object({
      source: sourceKey,
      at: instant.nullable(),
      reason: endReason,
      eventId: z.string().nullable(),
      sentence,
    }),
  ),
  /** As they are now, whatever instant the rest is about. */
  memberships: z.array(
    z.object({
      ...membership.pick({ target: true, desired: true, applied: true, appliedAt: true, lastError: true })
        .shape,
      platform,
      /** Null: no account is linked. */
      accountId: z.string().nullable(),
      state: z.enum([...STATES, 'unlinked']),
      /** Null: it never was, or no account is linked. */
      desiredSince: instant.nullable(),
      next: z.object({
        /** Null: nothing follows. */
        action: platformCall.shape.action.nullable(),
        waitsFor: z.enum(['customer', 'operator', 'platform']).nullable(),
        at: instant.nullable(),
      }),
      sentence,
    }),
  ),
})
export type ExplanationJson = z.input<typeof explanationAnswer>

const accessPage = pageOf(access, idPlace)

/** What an answer says, whenever it is given. */
function withoutMoment<Answer extends { readonly asOf: unknown; readonly cursor: unknown }>({
  asOf: _asOf,
  cursor: _cursor,
  ...state
}: Answer) {
  return state
}

/** A page of customers with everything they may use. `found` holds one more than the page if there is a next page. */
async function readPage({ db, clock, catalog }: MountDeps, question: AccessesQuery, limit: number) {
  const found = (await readAccesses(db, clock, question)).map(catalog().withFeatures)
  return firstOf(found, limit, ({ customerId }) => customerId)
}

export const entitlementRoutes: readonly Route<EntitlementDeps>[] = [
  route('POST /entitlements/lookup', {
    operationId: 'lookUpEntitlements',
    summary:
      'What the customers with an email or a platform account may use. In a body, since URLs end up in logs.',
    ...READ,
    query: z.object({ ...AT.shape, ...PAGE }),
    body: z
      .strictObject(ofEach(LOOKUP_NAMES, () => idText.optional()))
      .refine(
        (details) => Object.keys(details).length === 1,
        `needs exactly one of ${LOOKUP_NAMES.join(', ')}`,
      ),
    bodyType: 'json',
    answer: accessPage,
    async handle({ query, body, environment }, deps) {
      const { limit, cursor: after = '', at = null } = query
      const [[name = '', value = ''] = []] = Object.entries(body)
      const page = { after, limit: limit + 1 }
      const customerIds = await findCustomers(deps.db, environment, { name, value }, page)
      return readPage(deps, { environment, customerIds, at }, limit)
    },
  }),
  route('GET /entitlements', {
    operationId: 'findEntitlements',
    summary: 'What the customers with an external reference may use.',
    ...READ,
    query: z.object({ externalRef: idParameter, ...AT.shape, ...PAGE }),
    answer: accessPage,
    // As for one customer: `limit` and `after` do not change what these customers may use.
    tagged: ({ items, ...page }) => ({
      ...page,
      items: items.map(withoutMoment),
    }),
    async handle({ query, environment }, deps: EntitlementDeps) {
      const { externalRef: value, limit, cursor: after = '', at = null } = query
      const page = { after, limit: limit + 1 }
      const customerIds = await findCustomersByReference(
        deps.db,
        environment,
        { name: deps.reference, value },
        page,
      )
      return readPage(deps, { environment, customerIds, at }, limit)
    },
  }),
  route('GET /entitlements/:customerId', {
    operationId: 'getEntitlements',
    summary: 'Everything that a customer may use; an empty list for an unknown customer.',
    ...READ,
    query: AT,
    answer: access,
    tagged: true,
    timedAs: 'entitlements',
    plain: answerEntitlements,
  }),
  route('GET /entitlements/:customerId/:productId', {
    operationId: 'getEntitlement',
    summary: 'Whether a customer may use a product; a product never granted is an answer, not a 404.',
    ...READ,
    query: AT,
    answer: productAccess,
    tagged: withoutMoment,
    timedAs: 'entitlement',
    async handle({ params, query: { at = null }, environment }, deps: EntitlementDeps) {
      const { customerId, productId } = params
      const answer = await deps.readAccess({ environment, customerId, at })
      const isKnown =
        deps.catalog().hasProduct(productId) ||
        answer.entitlements.some((one) => one.productId === productId) ||
        (await knownProducts(deps.db, environment, [productId])).has(productId)
      return { ...answerFor(productId, answer), ...markUnknown(isKnown) }
    },
  }),
  // Before the explanation: a feature may have that name, and no product is called "features".
  route('GET /entitlements/:customerId/features/:feature', {
    operationId: 'getFeature',
    summary: 'Whether a customer has a feature, by any product that gives it.',
    ...READ,
    query: AT,
    answer: featureAccess,
    tagged: withoutMoment,
    timedAs: 'entitlement',
    async handle({ params, query: { at = null }, environment }, { catalog, readAccess }: EntitlementDeps) {
      const { customerId, feature } = params
      const answer = await readAccess({ environment, customerId, at })
      const { featureIn, productsOf } = catalog()
      return { ...featureIn(answer, feature), ...markUnknown(productsOf(feature).length > 0) }
    },
  }),
  route('GET /entitlements/:customerId/:productId/explanation', {
    operationId: 'explainEntitlement',
    summary:
      'Why a customer may or may not use a product, event by event, and why they have its roles and groups, or not.',
    ...READ,
    query: AT,
    answer: explanationAnswer,
    tagged: ({ asOf: _, ...state }) => state,
    async handle({ params, query: { at = null }, environment }, { db, clock, sync }: EntitlementDeps) {
      const asked = { environment, ...params }
      const explanation = await readExplanation(db, clock, { ...asked, at })
      return { ...explanation, memberships: await sync.explain(asked) }
    },
  }),
]
