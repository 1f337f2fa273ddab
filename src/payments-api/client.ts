/* What a backfill asks the payments service, and how webhook endpoints are managed. It reads, but for those. */

import { createHash } from 'node:crypto'
import type { z } from 'zod'
import type { Issue } from '../errors.js'
import type { Environment } from '../provider/event.js'
import { isUsableId } from '../provider/ids.js'
import { isJsonObject, type JsonObject } from '../provider/json.js'
import { MAX_PAGE_SIZE, type WebhookEndpointChange } from '../provider/requests.js'
import { isPaymentsApiError, PaymentsApiError } from './failure.js'
import {
  type CallOptions,
  createTransport,
  issuesOf,
  type Transport,
  type TransportOptions,
} from './transport.js'
import {
  type Customer,
  cursorPageSchema,
  customerSchema,
  type LegacyPayment,
  legacyPaymentSchema,
  type NewWebhookEndpoint,
  newWebhookEndpointSchema,
  numberedPageSchema,
  type Payment,
  paymentSchema,
  type RotatedSecret,
  rotatedSecretSchema,
  type Subscription,
  subscriptionSchema,
  type WebhookEndpoint,
  webhookEndpointSchema,
} from './wire.js'

export interface PaymentsApiOptions extends TransportOptions {
  /** Whether the v2 generation may be asked, too. */
  readonly legacy?: boolean
}

/** A record, and the same as it was read: with every field, whatever its type. */
export interface Read<T> {
  readonly record: T
  readonly raw: JsonObject
}

/** An element of a list that is not what it should be: one odd record does not end the reading of the others. */
export interface Unreadable {
  readonly raw: unknown
  readonly issues: readonly Issue[]
}

export interface Page<T, Place> {
  readonly items: readonly Read<T>[]
  readonly unreadable: readonly Unreadable[]
  /** Where the next page begins; null: this is the last one. */
  readonly next: Place | null
}

export interface ListOptions<Place> extends CallOptions {
  /** `next` of the page before; left out or null: from the beginning. */
  readonly from?: Place | null
  /** 1 to 100 in v3, 1 to 25 in v2; left out: as many as possible. */
  readonly limit?: number
}

export interface Listed<T, Place> {
  /** One page. */
  list(options?: ListOptions<Place>): Promise<Page<T, Place>>
  /**
   * Page after page, up to the last one. A list that changes meanwhile may show a record twice. A page by cursor that is
   * too large is asked for again with fewer records.
   * @throws {PaymentsApiError} `cursor_refused` where a cursor has expired: begin again
   */
  pages(options?: ListOptions<Place>): AsyncGenerator<Page<T, Place>, void, undefined>
}

/** @throws {PaymentsApiError} `not_found` if there is none with this id */
type Get<T> = (id: string, options?: CallOptions) => Promise<Read<T>>

export interface Records<T> extends Listed<T, string> {
  readonly get: Get<T>
}

/** At most 255 visible ASCII characters. The same key must go with the same request, for a day. */
export interface PostOptions extends CallOptions {
  readonly idempotencyKey: string
}

/**
 * The payments service, as a merchant's key sees it. Every call rejects with a `PaymentsApiError`, or with the reason
 * of its own signal.
 */
export interface PaymentsApi {
  readonly environment: Environment
  readonly subscriptions: Records<Subscription>
  readonly payments: Records<Payment>
  readonly customers: Records<Customer> & {
    findByEmail(email: string, options?: CallOptions): Promise<Page<Customer, string>>
  }
  /** The service offers no list of them. */
  readonly webhookEndpoints: {
    /** The answer is the only place that shows the secret. */
    create(
      endpoint: WebhookEndpointChange & { readonly url: string },
      options: PostOptions,
    ): Promise<Read<NewWebhookEndpoint>>
    update(id: string, change: WebhookEndpointChange, options?: CallOptions): Promise<Read<WebhookEndpoint>>
    rotateSecret(id: string, options: PostOptions): Promise<Read<RotatedSecret>>
  }
  /** v2; null unless `legacy` is set. */
  readonly legacy: {
    readonly payments: {
      readonly get: Get<LegacyPayment>
      /** @param status such as `CHARGEBACK` */
      withStatus(status: string): Listed<LegacyPayment, number>
    }
  } | null
}

/** @throws {PaymentsApiError} `key_mismatch` if the key is not one of this environment */
export function createPaymentsApi(options: PaymentsApiOptions): PaymentsApi {
  const call = createTransport(options)
  const customers = '/v3/customers'
  const endpoints = '/v3/webhook-endpoints'
  return {
    environment: options.environment,
    subscriptions: recordsAt(call, '/v3/subscriptions', subscriptionSchema),
    payments: recordsAt(call, '/v3/payments', paymentSchema),
    customers: {
      ...recordsAt(call, customers, customerSchema),
      findByEmail: (email, given) => cursorPage(call, customers, customerSchema, { ...given }, { email }),
    },
    webhookEndpoints: {
      async create(endpoint, { idempotencyKey, signal }) {
        const key = usableKey(idempotencyKey)
        const data = await call(
          { method: 'POST', path: endpoints, body: endpoint, idempotencyKey: key },
          { signal },
        )
        return readOne(newWebhookEndpointSchema, data, `POST ${endpoints}`)
      },
      async update(id, change, given) {
        const path = pathOf(endpoints, id)
        const data = await call({ method: 'PATCH', path, body: change }, given)
        return readOne(webhookEndpointSchema, data, `PATCH ${path}`, id)
      },
      async rotateSecret(id, { idempotencyKey, signal }) {
        const path = `${pathOf(endpoints, id)}/rotate-secret`
        const key = usableKey(idempotencyKey)
        const data = await call({ method: 'POST', path, idempotencyKey: key }, { signal })
        return readOne(rotatedSecretSchema, data, `POST ${path}`)
      },
    },
    legacy: options.legacy
      ? {
          payments: {
            get: getAt(call, LEGACY_PAYMENTS, legacyPaymentSchema),
            withStatus: (status) =>
              listed(
                (given) => numberedPage(call, LEGACY_PAYMENTS, legacyPaymentSchema, given, { status }),
                MAX_PAGE_SIZE.v2,
                MAX_PAGE_SIZE.v2,
              ),
          },
        }
      : null,
  }
}

const LEGACY_PAYMENTS = '/api/payment'

type Filter = Readonly<Record<string, string>>

function recordsAt<T>(call: Transport, path: string, schema: z.ZodType<T>): Records<T> {
  return {
    get: getAt(call, path, schema),
    ...listed<T, string>((options) => cursorPage(call, path, schema, options), MAX_PAGE_SIZE.v3, 1),
  }
}

function getAt<T>(call: Transport, path: string, schema: z.ZodType<T>): Get<T> {
  return async (id, options) => {
    const own = pathOf(path, id)
    return readOne(schema, await call({ method: 'GET', path: own }, options), `GET ${own}`, id)
  }
}

async function cursorPage<T>(
  call: Transport,
  path: string,
  schema: z.ZodType<T>,
  { from = null, limit = MAX_PAGE_SIZE.v3, signal }: ListOptions<string>,
  filter: Filter = {},
): Promise<Page<T, string>> {
  const data = await call({ method: 'GET', path, query: { ...filter, limit, cursor: from } }, { signal })
  const { items, pagination } = shaped(cursorPageSchema, data, `GET ${path}`)
  const { nextCursor, hasMore } = pagination
  if (hasMore !== (nextCursor !== null) || (from !== null && nextCursor === from)) {
    throw invalidAnswer(`GET ${path}`, 'its page does not say where the next one begins')
  }
  return { ...readAll(schema, items), next: nextCursor }
}

async function numberedPage<T>(
  call: Transport,
  path: string,
  schema: z.ZodType<T>,
  { from, limit = MAX_PAGE_SIZE.v2, signal }: ListOptions<number>,
  filter: Filter,
): Promise<Page<T, number>> {
  const asked = from ?? 1
  const data = await call({ method: 'GET', path, query: { ...filter, page: asked, limit } }, { signal })
  const { data: items, pagination } = shaped(numberedPageSchema, data, `GET ${path}`)
  const { page, totalPages } = pagination
  if (page !== asked)
    throw invalidAnswer(`GET ${path}`, `it is page ${page}, and page ${asked} was asked for`)
  return { ...readAll(schema, items), next: page < totalPages ? page + 1 : null }
}

/** Of the records of a page, which are long; empty if there are none. */
function fingerprintOf(records: readonly unknown[]): string {
  return records.length === 0 ? '' : createHash('sha256').update(JSON.stringify(records)).digest('hex')
}

/**
 * Both ways to read a list, by what reads one page.
 * @param most the size of a page
 * @param least its size where records are long; a list by numbers has pages of one size alone
 */
function listed<T, Place extends string | number>(
  list: (options: ListOptions<Place>) => Promise<Page<T, Place>>,
  most: number,
  least: number,
): Listed<T, Place> {
  async function* pages(options: ListOptions<Place> = {}) {
    const seen = new Set<Place>()
    let before = ''
    let from = options.from ?? null
    let limit = options.limit ?? most
    for (;;) {
      let page: Page<T, Place>
      try {
        page = await list({ ...options, from, limit })
      } catch (error) {
        if (!isPaymentsApiError(error, 'answer_too_large') || limit <= least) throw error
        limit = Math.max(least, Math.floor(limit / 2))
        continue
      }
      const shown = fingerprintOf([page.items, page.unreadable].flat().map(({ raw }) => raw))
      // Else a list that turns in a circle would never end.
      if ((page.next !== null && seen.has(page.next)) || (shown === before && shown !== '')) {
        throw invalidAnswer('a list', 'a page repeats')
      }
      yield page
      if (page.next === null) return
      seen.add(page.next)
      before = shown
      from = page.next
    }
  }
  return { list: (options = {}) => list(options), pages }
}

// What is sent

/** @throws {PaymentsApiError} `not_found` for what can't be an id: in a path it would name something else */
function pathOf(collection: string, id: string): string {
  if (isUsableId(id) && !/^\.{1,2}$/.test(id)) return `${collection}/${encodeURIComponent(id)}`
  throw new PaymentsApiError(
    'not_found',
    'This is not an id: it is empty, too long, or has characters that no id has.',
  )
}

function usableKey(key: string): string {
  if (/^[!-~]{1,255}$/.test(key)) return key
  throw new TypeError('an idempotency key has 1 to 255 visible ASCII characters')
}

// What is read

function readAll<T>(schema: z.ZodType<T>, items: readonly unknown[]): Omit<Page<T, never>, 'next'> {
  const read: Read<T>[] = []
  const unreadable: Unreadable[] = []
  for (const raw of items) {
    const { data, error } = schema.safeParse(raw)
    if (error === undefined && isJsonObject(raw)) read.push({ record: data as T, raw })
    else unreadable.push({ raw, issues: error === undefined ? [] : issuesOf(error) })
  }
  return { items: read, unreadable }
}

function readOne<T>(schema: z.ZodType<T>, raw: unknown, what: string, id?: string): Read<T> {
  const record = shaped(schema, raw, what)
  if (!isJsonObject(raw)) throw invalidAnswer(what, 'it is not an object')
  if (id !== undefined && raw.id !== id) {
    throw invalidAnswer(what, 'it is about another record', [{ path: 'id', message: 'is of another record' }])
  }
  return { record, raw }
}

function shaped<T>(schema: z.ZodType<T>, value: unknown, what: string): T {
  const { data, error } = schema.safeParse(value)
  if (error === undefined) return data as T
  throw invalidAnswer(what, 'a field is missing or has another type', issuesOf(error))
}

function invalidAnswer(what: string, why: string, issues: readonly Issue[] = []): PaymentsApiError {
  const message = `The payments API's answer to ${what} can't be used: ${why}. Try again; if it stays so, ask the payments service.`
  return new PaymentsApiError('answer_invalid', message, { issues })
}
