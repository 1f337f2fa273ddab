import type { IncomingMessage } from 'node:http'
import { z } from 'zod'
import type { AccessAnswer, KnownCustomer } from '../entitlements/model.js'
import type { Environment } from '../provider/event.js'
import { isUsableId } from '../provider/ids.js'
import type { AccessesQuery, ProductCustomer, ProductCustomersQuery } from '../store/access.js'
import type { CustomerQuery } from '../store/account.js'
import type { ChangePageQuery, ListedChange } from '../store/changes.js'
import type { CustomerLookup } from '../store/customers.js'
import type { IdPage } from '../store/keys.js'
import type { Authenticate } from './authenticate.js'
import { readEnvironment, readQuery } from './query.js'

/** What the routes about customers ask the store. All reject with `store_unavailable` where it can't answer. */
export interface CustomerQuestions {
  /** One answer for each customer, in the order asked. */
  readonly readAccesses: (query: AccessesQuery) => Promise<readonly AccessAnswer[]>
  /** Ids of the customers whom the merchant's own reference leads to, in order. */
  readonly findByReference: (query: {
    readonly environment: Environment
    readonly reference: string
    readonly page: IdPage
  }) => Promise<readonly string[]>
  /** The same for many, by reference; one that nobody has is not in the map. */
  readonly findByReferences: (query: {
    readonly environment: Environment
    readonly references: readonly string[]
  }) => Promise<ReadonlyMap<string, readonly string[]>>
  /** Ids of customers, in order. */
  readonly findByDetail: (query: {
    readonly environment: Environment
    readonly lookup: CustomerLookup
    readonly page: IdPage
  }) => Promise<readonly string[]>
  /** Null where nothing is known. */
  readonly readCustomer: (query: CustomerQuery) => Promise<KnownCustomer | null>
  readonly readProductCustomers: (query: ProductCustomersQuery) => Promise<readonly ProductCustomer[]>
  /** Null for a cursor that this change log never gave out. */
  readonly readChangePage: (query: ChangePageQuery) => Promise<readonly ListedChange[] | null>
}

export interface CustomerDeps {
  readonly authenticate: Authenticate
  /** The environments of the configured endpoints; asked each time, since a reload may change them. */
  readonly environments: () => readonly Environment[]
  readonly customers: CustomerQuestions
}

/** An id, a reference or a detail: what no stored one can be, no question needs to look for. */
export const idSchema = z
  .string()
  .refine(isUsableId, 'is not a text of 1 to 255 characters without control characters')

/**
 * Sees that the request's key has the right to ask, and about which environment it does. `known`: the parameters
 * that the route takes.
 *
 * @throws LatchkeyError `unauthorized`, `forbidden`, `invalid_request`.
 */
export function readQuestion(
  req: IncomingMessage,
  { authenticate, environments }: CustomerDeps,
  known: readonly string[],
): { readonly environment: Environment; readonly query: URLSearchParams } {
  const key = authenticate(req, 'read')
  const query = readQuery(req, known)
  return { environment: readEnvironment(query, environments(), key), query }
}
