/* What is stored about customers, the log of their access, and changes by hand. */

import { z } from 'zod'
import { type ErrorCode, LatchkeyError } from '../errors.js'
import type { Act, PerformAct } from '../people/acts.js'
import type { Erase } from '../people/erase.js'
import type { PreviewAct } from '../people/preview-act.js'
import { ACCOUNT_FACTS, type AccountFact, DETAIL_NAMES, ofEach, PLATFORMS } from '../provider/accounts.js'
import type { Fact } from '../provider/facts.js'
import { isPlainText } from '../provider/ids.js'
import type { ProjectedCustomer } from '../recompute/run.js'
import { type KnownSource, readKnownCustomer } from '../store/account.js'
import { type Match, SEARCH_WAYS, searchCustomers } from '../store/customer-search.js'
import type { CallPreview } from '../sync/preview-calls.js'
import { access, byHand as byHandFields, environment, instant, platformCall, source } from './answers.js'
import { idText } from './body.js'
import {
  flagParameter,
  idParameter,
  instantParameter,
  limitParameter,
  pageOf,
  paginated,
  placeIn,
} from './query.js'
import { type MountDeps, type ParamNames, READ, type Route, route } from './route.js'

export interface ActDeps extends MountDeps {
  readonly performAct: PerformAct
  readonly previewAct: PreviewAct
  readonly previewCalls: (customers: readonly ProjectedCustomer[]) => Promise<CallPreview>
  readonly erase: Erase
}

const fact = z.object({ value: z.string(), since: instant, eventId: z.string() }).nullable()

export const customerAnswer = z.object({
  customerId: z.string(),
  environment,
  identities: z.object(ofEach(DETAIL_NAMES, () => fact)),
  references: z.object({
    externalRef: fact,
    metadata: z.record(z.string(), fact),
    all: z.array(z.object({ name: z.string(), value: z.string() })),
  }),
  deletedAt: instant.nullable(),
  erasedAt: instant.nullable(),
  blocks: z.array(
    z.object({
      productId: z.string().nullable(),
      since: instant,
      until: instant.nullable(),
      ...byHandFields,
    }),
  ),
  sources: z.array(
    z.object({
      productId: z.string().nullable(),
      ...source.shape,
      eventId: z.string().nullable(),
      providerStatus: z.string().nullable(),
    }),
  ),
})

/** Every fact, with the time and the event it comes from. */
function factOf(known: Fact | undefined) {
  return known === undefined ? null : { value: known.value, since: known.at, eventId: known.by }
}

function knownSource({ source: state, productId, view }: KnownSource) {
  const neverGave = { active: false, since: null, until: null, pastDue: false, reason: null, eventId: null }
  const { providerStatus } = state
  return { productId, providerStatus, ...(view ?? { ...state, ...neverGave }) }
}

export const erasureAnswer = z.object({
  customerId: z.string(),
  environment,
  eventId: z.string(),
  erasedAt: instant,
  wasKnown: z.boolean(),
  finishedAt: instant.nullable(),
})
export type ErasureJson = z.input<typeof erasureAnswer>

/** Long enough for a sentence or two; it is stored with the event for good. */
const MAX_REASON_LENGTH = 1_000

const reasonText = z
  .string()
  .trim()
  .min(1, 'is empty')
  .refine(
    (text) => isPlainText(text, MAX_REASON_LENGTH),
    `is over ${MAX_REASON_LENGTH} characters, or more than one line`,
  )
const why = { reason: reasonText }
const perhapsWhy = { reason: reasonText.nullish() }

export const actAnswer = z.object({
  eventId: z.string(),
  ...access.shape,
  /** Only of a dry run: the calls to platforms that would follow. */
  calls: z.array(platformCall).exactOptional(),
})
export type ActJson = z.input<typeof actAnswer>

/** A change by hand, or with `dryRun` none. It answers with what the customer may use afterwards. */
function byHand<
  const Path extends `/customers/:customerId/${string}`,
  Body extends z.ZodType<{ readonly reason?: string | null | undefined }>,
>(
  name: `${'POST' | 'PUT' | 'DELETE'} ${Path}`,
  {
    act,
    errors = [],
    ...declared
  }: {
    readonly operationId: string
    readonly summary: string
    readonly body: Body
    readonly status?: 201
    readonly errors?: readonly ErrorCode[]
    readonly act: (body: z.output<Body>, params: Readonly<Record<ParamNames<Path>, string>>) => Act
  },
): Route<ActDeps> {
  return route(name, {
    ...declared,
    scope: 'write',
    environments: 'one',
    query: z.object({ dryRun: flagParameter.default(false) }),
    takesIdempotencyKey: true,
    answer: actAnswer,
    errors: ['idempotency_key_conflict', ...errors],
    async handle({ params, query: { dryRun }, body, environment, key, idempotencyKey }, deps: ActDeps) {
      const { customerId } = params as { readonly customerId: string }
      const given = body as z.output<Body>
      const who = { environment, customerId }
      const reason = given.reason ?? null
      const request = { ...who, act: act(given, params), reason, actor: key.name, idempotencyKey }
      const { withFeatures } = deps.catalog()
      if (!dryRun) {
        const { eventId, access: since } = await deps.performAct(request)
        return { eventId, ...withFeatures(since) }
      }
      const { eventId, access: would, accounts } = await deps.previewAct(request)
      const active = would.entitlements.filter((one) => one.active)
      const activeProducts = active.map(({ productId }) => productId)
      const { sample } = await deps.previewCalls([{ ...who, activeProducts, accounts }])
      return { eventId, ...withFeatures(would), calls: sample }
    },
  })
}

/** The id of an account; a user name is not one. */
const accountTexts = Object.fromEntries(
  Object.values(PLATFORMS).map(({ account, title, id, idForm }) => [
    account,
    z.string().regex(id, `is not the id of a ${title} account: ${idForm}`),
  ]),
) as Readonly<Record<AccountFact, z.ZodString>>

const searchPlace = placeIn<Match>(
  (text) => {
    try {
      const [by, value, customerId] = z
        .tuple([z.enum(SEARCH_WAYS), z.string(), z.string()])
        .parse(JSON.parse(text))
      return { by, value, customerId }
    } catch {
      return null
    }
  },
  ({ by, value, customerId }) => JSON.stringify([by, value, customerId]),
)

const foundCustomer = z.object({
  customerId: z.string(),
  /** The first detail that begins with the text, in this order. */
  matched: z.object({ by: z.enum(SEARCH_WAYS), value: z.string() }),
  /** Null: the key lacks the scope `write`. */
  identities: z.object(ofEach(DETAIL_NAMES, () => z.string().nullable())).nullable(),
})
export type FoundCustomerJson = z.input<typeof foundCustomer>

export const customerQuestions: readonly Route<MountDeps>[] = [
  route('GET /customers', {
    operationId: 'searchCustomers',
    summary:
      'Customers by the beginning of their id or reference; with the scope `write` also of an email, an account or its name.',
    ...READ,
    query: z.object({
      query: idParameter,
      limit: limitParameter,
      cursor: searchPlace.optional(),
    }),
    answer: pageOf(foundCustomer, searchPlace),
    async handle({ query: { query: prefix, limit, cursor: after = null }, environment, key }, deps) {
      const { db, reference } = deps
      const isPersonal = key.scopes.includes('write')
      const asked = { environment, prefix, reference, isPersonal, after, limit }
      const { items, next } = await searchCustomers(db, asked)
      return {
        pagination: paginated(next),
        items: items.map(({ customerId, by, value, facts }) => ({
          customerId,
          matched: { by, value },
          identities: isPersonal ? ofEach(DETAIL_NAMES, (name) => facts[name]?.value ?? null) : null,
        })),
      }
    },
  }),
  route('GET /customers/:customerId', {
    operationId: 'getCustomer',
    summary: 'Everything stored about a person, for a data request.',
    ...READ,
    answer: customerAnswer,
    errors: ['customer_not_found'],
    async handle({ params, environment }, { db, clock }) {
      const known = await readKnownCustomer(db, clock, { environment, ...params })
      if (known === null) {
        throw new LatchkeyError('customer_not_found', 'Nothing is stored about this customer.')
      }
      const { facts, metadata, references, blocks, sources } = known
      return {
        ...known,
        identities: ofEach(DETAIL_NAMES, (name) => factOf(facts[name])),
        references: {
          externalRef: factOf(facts.externalRef),
          metadata: Object.fromEntries(Object.entries(metadata).map(([key, one]) => [key, factOf(one)])),
          all: references,
        },
        blocks: blocks.map(({ from, ...block }) => ({ ...block, since: from })),
        sources: sources.map(knownSource),
      }
    },
  }),
]

export const actRoutes: readonly Route<ActDeps>[] = [
  route('DELETE /customers/:customerId', {
    operationId: 'eraseCustomer',
    summary: 'Erases a person. Repeating the call returns the same erasure.',
    scope: 'admin',
    environments: 'one',
    body: z.strictObject(perhapsWhy),
    answer: erasureAnswer,
    handle: ({ params, body, environment, key }, { erase }: ActDeps) =>
      erase({ environment, ...params, actor: key.name, reason: body.reason ?? null }),
  }),
  byHand('POST /customers/:customerId/grants', {
    operationId: 'grantProduct',
    summary: 'Grants a product by hand, until a time or for good.',
    body: z.strictObject({ productId: idText, until: instantParameter.nullish(), ...why }),
    status: 201,
    act: ({ productId, until = null }) => ({ type: 'manual.granted', productId, until }),
  }),
  byHand('DELETE /customers/:customerId/grants/:productId', {
    operationId: 'revokeGrant',
    summary: 'Revokes a grant made by hand, and nothing else.',
    body: z.strictObject(perhapsWhy),
    errors: ['grant_not_found'],
    act: (_, { productId }) => ({ type: 'manual.revoked', productId }),
  }),
  byHand('PUT /customers/:customerId/blocks', {
    operationId: 'blockCustomer',
    summary: 'Blocks a customer from every product.',
    body: z.strictObject(why),
    act: () => ({ type: 'manual.blocked', productId: null }),
  }),
  byHand('DELETE /customers/:customerId/blocks', {
    operationId: 'unblockCustomer',
    summary: 'Lifts every block on a customer.',
    body: z.strictObject(perhapsWhy),
    errors: ['block_not_found'],
    act: () => ({ type: 'manual.unblocked', productId: null }),
  }),
  byHand('PUT /customers/:customerId/blocks/:productId', {
    operationId: 'blockProduct',
    summary: 'Blocks a customer from one product.',
    body: z.strictObject(why),
    act: (_, { productId }) => ({ type: 'manual.blocked', productId }),
  }),
  byHand('DELETE /customers/:customerId/blocks/:productId', {
    operationId: 'unblockProduct',
    summary: 'Lifts the block on one product.',
    body: z.strictObject(perhapsWhy),
    errors: ['block_not_found'],
    act: (_, { productId }) => ({ type: 'manual.unblocked', productId }),
  }),
  byHand('PUT /customers/:customerId/identities', {
    operationId: 'linkAccounts',
    summary: 'Links platform accounts; an omitted one stays as it is.',
    body: z
      .strictObject({ ...ofEach(ACCOUNT_FACTS, (fact) => accountTexts[fact].nullish()), ...perhapsWhy })
      .refine(
        (named) => ACCOUNT_FACTS.some((fact) => named[fact] != null),
        `names none of ${ACCOUNT_FACTS.join(', ')}`,
      ),
    errors: ['customer_erased'],
    act: (named) => ({
      type: 'manual.identity_linked',
      accounts: Object.fromEntries(
        ACCOUNT_FACTS.flatMap((fact) => (named[fact] == null ? [] : [[fact, named[fact]]])),
      ),
    }),
  }),
]
