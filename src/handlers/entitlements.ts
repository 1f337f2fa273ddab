/* What customers may use: by customer, by product, by reference or contact detail, and in batches. */

import type { ServerResponse } from 'node:http'
import { setImmediate as turn } from 'node:timers/promises'
import { z } from 'zod'
import type { Explanation } from '../entitlements/explain.js'
import type { Catalog, ProductAccess } from '../entitlements/features.js'
import type { AccessAnswer, ProductAnswer } from '../entitlements/model.js'
import { LOOKUP_NAMES, ofEach } from '../provider/accounts.js'
import type { Environment } from '../provider/event.js'
import type { AccessesQuery, AccessQuery } from '../store/access.js'
import type { ExplanationQuery } from '../store/account.js'
import type { CustomerLookup } from '../store/customers.js'
import type { IdPage } from '../store/schema.js'
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
  productAccess,
  rail,
  sourceKey,
  unknown,
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

type InEnvironment<Query> = Query & { readonly environment: Environment }

/** All reject with `store_unavailable` if the store can't answer: never with an empty answer. */
export interface EntitlementDeps {
  readonly readAccess: (question: AccessQuery) => Promise<AccessAnswer>
  readonly readExplanation: (question: ExplanationQuery) => Promise<Explanation>
  readonly customers: {
    /** One answer per customer, in the order of the request. */
    readonly readAccesses: (query: AccessesQuery) => Promise<readonly AccessAnswer[]>
    /** By customer, their products in order; without customers who never had access. */
    readonly readGrants: (
      query: Omit<AccessesQuery, 'at'>,
    ) => Promise<ReadonlyMap<string, readonly ProductAccess[]>>
    /** Those of these products that any customer has, or once had, access to. */
    readonly knownProducts: (
      query: InEnvironment<{ readonly productIds: readonly string[] }>,
    ) => Promise<ReadonlySet<string>>
    /** Ids of the customers with this external reference, in order. */
    readonly findByReference: (
      query: InEnvironment<{ readonly reference: string; readonly page: IdPage }>,
    ) => Promise<readonly string[]>
    /** The same for many references. The map leaves out references without a customer. */
    readonly findByReferences: (
      query: InEnvironment<{ readonly references: readonly string[] }>,
    ) => Promise<ReadonlyMap<string, readonly string[]>>
    /** Ids of customers, in order. */
    readonly findByDetail: (
      query: InEnvironment<{ readonly lookup: CustomerLookup; readonly page: IdPage }>,
    ) => Promise<readonly string[]>
  }
  /** Called each time, since a reload may change it. */
  readonly catalog: () => Catalog
  /** The answer for one product, even if the customer's answer does not list it. */
  readonly answerFor: (productId: string, answer: AccessAnswer) => ProductAnswer
  readonly keptAnswers: KeptAnswers
  /** Epoch milliseconds. */
  readonly clock: () => number
}

const AT = z.object({ at: instantParameter.optional() })

/** The queries of nearly every request, and the environment that each names: these skip parsing. */
const PLAIN_QUERIES: ReadonlyMap<string, Environment | null> = new Map([
  ['', null],
  ['environment=live', 'live'],
  ['environment=sandbox', 'sandbox'],
])

/** Repeated questions are answered from memory while nothing has changed. */
function answerEntitlements(deps: EntitlementDeps & MountDeps): RawHandler<'customerId'> {
  const { authenticate, environments, keptAnswers, clock, catalog, readAccess } = deps
  const readQuestion = (req: Parameters<RawHandler>[0], customerId: string): AccessQuery => {
    const key = authenticate(req, 'read')
    const plain = PLAIN_QUERIES.get(queryOf(req))
    if (plain !== undefined) {
      return { environment: chooseEnvironment(plain, environments, key), customerId, at: null }
    }
    const given = readParameters(req, true, AT)
    const environment = chooseEnvironment(given.environment ?? null, environments, key)
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
    const kept = question.at === null ? keptAnswers.find(question.environment, customerId, now) : null
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
  held: z.array(z.object({ ...explainedEvent, source: sourceKey.nullable(), reason: holdReason, sentence })),
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
})
export type ExplanationJson = z.input<typeof explanationAnswer>

const accessPage = pageOf(access, idPlace)

/** A page of customers with everything they may use. `found` holds one more than the page if there is a next page. */
async function readPage({ customers, catalog }: EntitlementDeps, question: AccessesQuery, limit: number) {
  const found = (await customers.readAccesses(question)).map(catalog().withFeatures)
  return firstOf(found, limit, ({ customerId }) => customerId)
}

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
  readonly active: boolean
  /** Epoch milliseconds; null if no end is known, and for a product never granted. */
  readonly until: number | null
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
    async handle({ query, body, environment }, deps: EntitlementDeps) {
      const { limit, cursor: after = '', at = null } = query
      const [[name = '', value = ''] = []] = Object.entries(body)
      const page = { after, limit: limit + 1 }
      const customerIds = await deps.customers.findByDetail({ environment, lookup: { name, value }, page })
      return readPage(deps, { environment, customerIds, at }, limit)
    },
  }),
  route('POST /entitlements/check', {
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
          active: z.boolean(),
          until: instant.nullable(),
          ...unknown,
        }),
      ),
    }),
    handle: ({ body, environment }, deps: EntitlementDeps) => answerChecks(body.checks, environment, deps),
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
      items: items.map(({ asOf: _asOf, cursor: _cursor, ...state }) => state),
    }),
    async handle({ query, environment }, deps: EntitlementDeps) {
      const { externalRef: reference, limit, cursor: after = '', at = null } = query
      const page = { after, limit: limit + 1 }
      const customerIds = await deps.customers.findByReference({ environment, reference, page })
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
    tagged: ({ asOf: _asOf, cursor: _cursor, ...state }) => state,
    timedAs: 'entitlement',
    async handle({ params, query: { at = null }, environment }, deps: EntitlementDeps) {
      const { customerId, productId } = params
      const answer = await deps.readAccess({ environment, customerId, at })
      const isKnown =
        deps.catalog().hasProduct(productId) ||
        answer.entitlements.some((one) => one.productId === productId) ||
        (await deps.customers.knownProducts({ environment, productIds: [productId] })).has(productId)
      return { ...deps.answerFor(productId, answer), ...markUnknown(isKnown) }
    },
  }),
  // Before the explanation: a feature may have that name, and no product is called "features".
  route('GET /entitlements/:customerId/features/:feature', {
    operationId: 'getFeature',
    summary: 'Whether a customer has a feature, by any product that gives it.',
    ...READ,
    query: AT,
    answer: featureAccess,
    tagged: ({ asOf: _asOf, cursor: _cursor, ...state }) => state,
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
      'Why a customer may or may not use a product: every event that counted, and every event that did not.',
    ...READ,
    query: AT,
    answer: explanationAnswer,
    tagged: ({ asOf: _, ...state }) => state,
    handle: ({ params, query: { at = null }, environment }, { readExplanation }: EntitlementDeps) =>
      readExplanation({ environment, ...params, at }),
  }),
]

/**
 * If several customers share a reference, the longest-lasting access is the answer. Each customer is read once,
 * however many checks name them: thousands may share one reference.
 */
async function answerChecks(
  checks: readonly Check[],
  environment: Environment,
  { customers, catalog }: EntitlementDeps,
) {
  const { hasProduct, productsOf, accessBy } = catalog()
  const references = [...new Set(checks.flatMap(({ externalRef }) => externalRef ?? []))]
  const byReference = await customers.findByReferences({ environment, references })
  const asked = checks.flatMap(({ customerId }) => customerId ?? [])
  const customerIds = [...new Set([...asked, ...byReference.values()].flat())]
  const named = new Set(checks.flatMap(({ productId }) => productId ?? []))
  const features = new Set(checks.flatMap(({ feature }) => feature ?? []))
  const needed = new Set([...named, ...[...features].flatMap(productsOf)])
  const grantsOf = new Map<string, readonly ProductAccess[]>()
  const granted = new Set<string>()
  for (let i = 0; i < customerIds.length; i += CUSTOMERS_AT_ONCE) {
    if (i > 0) await turn()
    const some = customerIds.slice(i, i + CUSTOMERS_AT_ONCE)
    for (const [customerId, grants] of await customers.readGrants({ environment, customerIds: some })) {
      const own = grants.filter(({ productId }) => needed.has(productId))
      for (const { productId } of own) granted.add(productId)
      grantsOf.set(customerId, own)
    }
  }
  const doubted = [...named].filter((id) => !hasProduct(id) && !granted.has(id))
  const known = await customers.knownProducts({ environment, productIds: doubted })
  const unknowns = new Set([
    ...doubted.filter((id) => !known.has(id)).map((productId) => nameOf({ productId })),
    ...[...features].filter((id) => productsOf(id).length === 0).map((feature) => nameOf({ feature })),
  ])

  const accessesOf = (customerId: string) => {
    const own = grantsOf.get(customerId) ?? []
    const ofFeatures = features.size === 0 ? [] : accessBy(own)
    return [
      ...own.map(({ productId, active, until }) => ({ name: nameOf({ productId }), active, until })),
      ...ofFeatures.map(({ id: feature, active, until }) => ({
        name: nameOf({ feature }),
        active,
        until,
      })),
    ]
  }
  const subjects = new Map<string, readonly string[]>([
    ...asked.map((customerId) => [keyOf({ customerId }), [customerId]] as const),
    ...[...byReference].map(([externalRef, ids]) => [keyOf({ externalRef }), ids] as const),
  ])
  const bests = new Map<string, ReadonlyMap<string, CustomerAccess>>()
  for (const [key, ids] of subjects) {
    if (ids.length > 1) await turn()
    bests.set(key, bestOf(ids, accessesOf))
  }
  const results = checks.map((one) => {
    const [key, name] = [keyOf(one), nameOf(one)]
    const { customerId, active, until } = bests.get(key)?.get(name) ?? {
      customerId: subjects.get(key)?.[0] ?? null,
      active: false,
      until: null,
    }
    return { ...one, customerId, active, until, ...markUnknown(!unknowns.has(name)) }
  })
  return { results }
}

/** The best answer of these customers, by the name of a product or feature. */
function bestOf(
  customerIds: readonly string[],
  accessesOf: (
    customerId: string,
  ) => readonly (Omit<CustomerAccess, 'customerId'> & { readonly name: string })[],
): ReadonlyMap<string, CustomerAccess> {
  const best = new Map<string, CustomerAccess>()
  for (const customerId of customerIds) {
    for (const { name, active, until } of accessesOf(customerId)) {
      const own = { customerId, active, until }
      best.set(name, longerLasting(best.get(name) ?? own, own))
    }
  }
  return best
}

/** Identifies the customer or the reference of a check. */
function keyOf({ customerId, externalRef }: Pick<Check, 'customerId' | 'externalRef'>): string {
  return customerId === undefined ? `externalRef ${externalRef}` : `customerId ${customerId}`
}

/** Identifies its product or feature. */
function nameOf({ productId, feature }: Pick<Check, 'productId' | 'feature'>): string {
  return feature === undefined ? `productId ${productId}` : `feature ${feature}`
}

/** Returns the first of two equal ones. */
function longerLasting(a: CustomerAccess, b: CustomerAccess): CustomerAccess {
  if (a.active !== b.active) return a.active ? a : b
  return endOf(b) > endOf(a) ? b : a
}

function endOf({ active, until }: CustomerAccess): number {
  return until ?? (active ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY)
}
