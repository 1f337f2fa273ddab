/* What the payments service has registered for the endpoints of the config, beside what the config and the store say. */

import type { Config } from '../config/schema.js'
import { isDecisive } from '../entitlements/policy.js'
import { isLatchkeyError, LatchkeyError } from '../errors.js'
import { createPaymentsApi, type PaymentsApi, type PaymentsApiOptions } from '../payments-api/client.js'
import { isPaymentsApiError } from '../payments-api/failure.js'
import type { WebhookEndpoint } from '../payments-api/wire.js'
import type { Endpoint } from '../provider/endpoint.js'
import type { Environment, Generation } from '../provider/event.js'
import { PAYMENT_EVENT_TYPES, SUBSCRIPTION_EVENT_TYPES, WIRE_TYPES } from '../provider/event-types.js'
import { isReportedEventId } from '../provider/ids.js'
import { loadPaces } from '../store/deliveries.js'
import { readEvent, readEventPage } from '../store/event-questions.js'
import type { Db } from '../store/schema.js'
import { type Finding, fail, ok, warn } from './finding.js'
import { checkSchema, openStored, unreadable } from './stored.js'

/** An endpoint of the config, as the service and the store know it. */
export interface Compared {
  readonly endpoint: Endpoint
  /** Null: it has no `serviceId`. An error: why the service could not be asked. */
  readonly record: WebhookEndpoint | LatchkeyError | null
  readonly received: Received
}

/** What has come to an endpoint. */
export interface Received {
  /** Of the newest new event, in epoch milliseconds; null: none, or the store can't be read. */
  readonly lastAt: number | null
  /** Of the newest event; null also if many others have come since. */
  readonly generation: Generation | null
  readonly apiVersion: string | null
}

const NOTHING: Received = { lastAt: null, generation: null, apiVersion: null }

/** @throws {LatchkeyError} `config_invalid` if the service's API is not configured, or its key is missing */
export function serviceApi(
  { provider }: Config,
  environment: Environment,
  options: Omit<PaymentsApiOptions, 'environment' | 'baseUrl' | 'apiKey'>,
): PaymentsApi {
  const access = provider[environment]
  if (access !== null) {
    const { baseUrl, apiKey } = access
    return createPaymentsApi({ ...options, environment, baseUrl, apiKey })
  }
  const path = `provider.${environment}`
  const issues = [{ path, message: 'is missing' }]
  const message = `the payments service's API is not configured: add ${path} with baseUrl and apiKey`
  throw new LatchkeyError('config_invalid', message, { issues })
}

/** Somebody waits for the answer, and can ask again. */
const ASKED = { random: () => 0, atOnce: 8, timeoutMs: 3_000, retries: 0 }

/** Asks the service for the record of each endpoint that has an id there, and the store for what came. */
export async function compareEndpoints(
  config: Config,
  clock: () => number,
  endpoints = config.endpoints,
): Promise<readonly Compared[]> {
  const apis = new Map<Environment, PaymentsApi>()
  const recordOf = async ({ environment, serviceId }: Endpoint): Promise<Compared['record']> => {
    if (serviceId === undefined) return null
    try {
      const api = apis.get(environment) ?? serviceApi(config, environment, { ...ASKED, clock })
      apis.set(environment, api)
      // The documents show no read of an endpoint: a change of nothing answers with its record.
      return (await api.webhookEndpoints.update(serviceId, {})).record
    } catch (error) {
      if (isLatchkeyError(error)) return error
      throw error
    }
  }
  const [received, ...records] = await Promise.all([
    readReceived(config, clock(), endpoints),
    ...endpoints.map(recordOf),
  ])
  return endpoints.map((endpoint, index) => ({
    endpoint,
    record: records[index] ?? null,
    received: received.get(endpoint.name) ?? NOTHING,
  }))
}

/** By endpoint name; empty if the store can't be read, which other checks report. */
async function readReceived(
  config: Config,
  now: number,
  endpoints: readonly Endpoint[],
): Promise<ReadonlyMap<string, Received>> {
  if (endpoints.length === 0) return new Map()
  const db = await openStored(config, now)
  if ('level' in db) return new Map()
  try {
    if ((await checkSchema(db)).level !== 'ok') return new Map()
    const paces = await loadPaces(db)
    const received = new Map<string, Received>()
    for (const endpoint of endpoints) {
      const lastAt = paces.get(endpoint.name)?.lastAt ?? null
      if (lastAt !== null) received.set(endpoint.name, { lastAt, ...(await readNewest(db, endpoint)) })
    }
    return received
  } catch (error) {
    // Throws what is a bug.
    unreadable('endpoints', error)
    return new Map()
  } finally {
    await db.destroy()
  }
}

async function readNewest(db: Db, { name, environment }: Endpoint): Promise<Omit<Received, 'lastAt'>> {
  const all = { disposition: null, type: null, customerId: null, from: null, to: null }
  const further = { paymentId: null, subscriptionId: null, conflicts: null }
  const filter = { environment, endpoint: name, ...all, ...further }
  const [newest] = (await readEventPage(db, { filter, before: null, limit: 1 })).items
  // What a backfill reported came through no endpoint, not even one with the same name.
  if (newest === undefined || isReportedEventId(newest.id)) return NOTHING
  const event = await readEvent(db, { environment, eventId: newest.id })
  return { generation: newest.generation, apiVersion: event?.normalized?.apiVersion ?? null }
}

/** The types without which access can be wrong, as v3 names them. */
export function decidingTypes({ policy, erasure }: Config): readonly string[] {
  const deciding: readonly string[] = [
    ...PAYMENT_EVENT_TYPES.filter((type) => isDecisive(type, policy)),
    ...SUBSCRIPTION_EVENT_TYPES,
    ...(erasure.onCustomerDeleted ? ['customer.deleted'] : []),
  ]
  return WIRE_TYPES.v3.filter((type) => deciding.includes(type))
}

/** Those of the types that a record does not have sent. */
export function typesLacking(
  types: readonly string[],
  { enabledEvents }: { readonly enabledEvents: readonly string[] },
): readonly string[] {
  return enabledEvents.length === 0 ? [] : types.filter((type) => !enabledEvents.includes(type))
}

/** The address without what may be a secret in it. */
export function shownAddress(url: string): string {
  if (!URL.canParse(url)) return 'no usable address'
  const { origin, pathname } = new URL(url)
  return `${origin}${pathname}`
}

/** What is wrong with the records of the endpoints that the service was asked for. */
export function checkRecords(config: Config, compared: readonly Compared[]): readonly Finding[] {
  const records = compared.flatMap(({ endpoint, record }) => {
    const isRecord = record !== null && !isLatchkeyError(record)
    return isRecord ? [{ environment: endpoint.environment, record }] : []
  })
  return compared.flatMap((one) => {
    const { endpoint, record } = one
    if (record === null) return []
    const what = `service ${endpoint.name}`
    if (isLatchkeyError(record)) return [unasked(what, endpoint, record)]
    const others = records.filter(
      (other) =>
        other.record !== record && other.record.isActive && other.environment === endpoint.environment,
    )
    const lacking = others.reduce(
      (types, other) => typesLacking(types, other.record),
      typesLacking(decidingTypes(config), record),
    )
    const found = [
      ...checkActive(what, endpoint, record),
      ...checkAddress(what, endpoint, record, config.endpoints),
      ...checkTypes(what, endpoint, lacking),
      ...checkVersion(what, record, one.received),
    ]
    if (found.length > 0) return found
    const count = record.enabledEvents.length
    const events = count === 0 ? 'all events' : `${count} types of events`
    return [
      ok(what, `active, ${shownAddress(record.url)}, ${events}, version ${record.apiVersion ?? 'unknown'}`),
    ]
  })
}

/** The message of a call that failed ends with what to do. */
function unasked(what: string, { name, serviceId }: Endpoint, error: LatchkeyError): Finding {
  if (isPaymentsApiError(error, 'not_found')) {
    const todo = `correct endpoints.${name}.serviceId, or remove it there and register the endpoint under another name`
    return fail(what, `the payments service does not know ${serviceId}`, todo)
  }
  // That the service answers a change of nothing follows from its documents, which do not say it.
  const todo = isPaymentsApiError(error, 'refused') ? 'see the endpoint in the service’s dashboard' : null
  const places = error.issues.map(({ path, message }) => ` (${path} ${message})`).join('')
  return warn(what, `the payments service can’t be asked: ${error.message}${places}`, todo)
}

function checkActive(what: string, { name }: Endpoint, { isActive }: WebhookEndpoint): readonly Finding[] {
  if (isActive) return []
  const todo = `\`latchkey endpoints update ${name} --enable\`, or remove endpoints.${name}.serviceId if you meant it`
  return [fail(what, 'inactive, so the payments service sends nothing to it', todo)]
}

/** Proxies may change the path. One that names another endpoint is wrong all the same: its secrets are others. */
function checkAddress(
  what: string,
  { name }: Endpoint,
  { url }: WebhookEndpoint,
  endpoints: readonly Endpoint[],
): readonly Finding[] {
  if (isAddressOf(url, name)) return []
  const other = endpoints.find((one) => isAddressOf(url, one.name))
  const shown = shownAddress(url)
  const update = `\`latchkey endpoints update ${name} --url\` with the address that ends in /webhooks/${name}`
  if (other !== undefined)
    return [fail(what, `it delivers to ${shown}, which is the endpoint ${other.name}`, update)]
  const detail = `it delivers to ${shown}, which does not end in /webhooks/${name}`
  return [warn(what, detail, `${update}, unless a proxy changes the path`)]
}

/** Whether the daemon takes what is sent there for this endpoint, if no proxy changes the path. */
export function isAddressOf(url: string, name: string): boolean {
  return URL.canParse(url) && new URL(url).pathname.endsWith(`/webhooks/${name}`)
}

function checkTypes(what: string, { name }: Endpoint, lacking: readonly string[]): readonly Finding[] {
  if (lacking.length === 0) return []
  const detail = `it is not sent ${lacking.join(', ')}, so access may be wrong`
  return [warn(what, detail, `\`latchkey endpoints update ${name} --all-events\``)]
}

/** What this program reads, as `2`, `v3` or `3.0.0-beta` begin. Other forms, such as dates, say nothing of it. */
const MAJOR = /^v?(\d{1,2})(?:\.|-|$)/
const READ = '3'

function checkVersion(
  what: string,
  { apiVersion = null }: WebhookEndpoint,
  received: Received,
): readonly Finding[] {
  if (apiVersion === null) return []
  const [, major = READ] = MAJOR.exec(apiVersion) ?? []
  if (major !== READ) {
    const todo = 'upgrade Latchkey, or register an endpoint of v3'
    return [warn(what, `its version is ${apiVersion}, and this Latchkey reads v3`, todo)]
  }
  const came = received.generation === 'v2' ? 'v2' : received.apiVersion
  if (came === null || came === apiVersion) return []
  const detail = `its version is ${apiVersion}, and the newest delivery to this name has ${came}`
  const todo =
    'another endpoint of the service delivers here, too: give each a name and an address of its own'
  return [warn(what, detail, todo)]
}
