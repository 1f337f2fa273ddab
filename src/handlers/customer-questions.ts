import type { IncomingMessage } from 'node:http'
import { z } from 'zod'
import type { AccessAnswer, Entitlement, KnownCustomer } from '../entitlements/model.js'
import type { Environment } from '../provider/event.js'
import { isUsableId } from '../provider/ids.js'
import type { Authenticate } from './authenticate.js'
import type { ToldChange } from './entitlement-json.js'
import { readEnvironment } from './environment.js'
import type { Page } from './page.js'
import { readQuery } from './query.js'

/** A detail to find customers by. Personal data: never in a URL or a log. */
export type CustomerDetail =
  | { readonly email: string }
  | { readonly communityId: string }
  | { readonly messengerId: string }

interface InEnvironment {
  readonly environment: Environment
}

/** What the routes about customers need. All reject with `store_unavailable` where the store can't tell. */
export interface CustomerQuestions {
  /** One answer for each customer, in the order asked; `at`: epoch milliseconds, or null for now. */
  readonly readAccesses: (
    question: InEnvironment & { readonly customerIds: readonly string[]; readonly at: number | null },
  ) => Promise<readonly AccessAnswer[]>
  /** Ids of the customers whom the merchant's own reference leads to, in order. */
  readonly findByReference: (
    question: InEnvironment & { readonly reference: string; readonly page: Page },
  ) => Promise<readonly string[]>
  /** The same for many, by reference; one that nobody has is not in the map. */
  readonly findByReferences: (
    question: InEnvironment & { readonly references: readonly string[] },
  ) => Promise<ReadonlyMap<string, readonly string[]>>
  /** Ids of customers, in order. */
  readonly findByDetail: (
    question: InEnvironment & { readonly lookup: CustomerDetail; readonly page: Page },
  ) => Promise<readonly string[]>
  /** Null for one of whom nothing is known. */
  readonly readCustomer: (
    question: InEnvironment & { readonly customerId: string },
  ) => Promise<KnownCustomer | null>
  /** Those with access to the product now, by customer id. */
  readonly readProductCustomers: (
    question: InEnvironment & { readonly productId: string } & Page,
  ) => Promise<readonly { readonly customerId: string; readonly entitlement: Entitlement }[]>
  /** Oldest first, after a cursor (null: from the first); null for a cursor that this change log never told. */
  readonly readChangePage: (
    question: InEnvironment & { readonly after: string | null; readonly limit: number },
  ) => Promise<readonly ToldChange[] | null>
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
