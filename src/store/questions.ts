import type { Policy } from '../entitlements/policy.js'
import type { Environment } from '../provider/event.js'
import {
  type AccessesQuery,
  type ProductCustomersQuery,
  readAccesses,
  readGrants,
  readProductCustomers,
} from './access.js'
import { type ExplanationQuery, readExplanation, readKnownCustomer } from './account.js'
import { type ChangePageQuery, readChangePage } from './changes.js'
import {
  type CustomerLookup,
  findCustomers,
  findCustomersByReference,
  findCustomersByReferences,
} from './customers.js'
import { knownProducts } from './entitlements.js'
import {
  type EventBodyQuery,
  type EventPageQuery,
  type EventQuery,
  readEvent,
  readEventBody,
  readEventPage,
} from './event-questions.js'
import type { Db, IdPage, PersonKey } from './schema.js'

/** What routes ask of the store. All reject with `store_unavailable` if it can't answer: never with an empty answer. */
export type StoreQuestions = ReturnType<typeof storeQuestions>

interface StoreQuestionsOptions {
  readonly policy: Policy
  /** The name of the reference by which apps look up customers. */
  readonly reference: string
}

export function storeQuestions(db: Db, clock: () => number, { policy, reference }: StoreQuestionsOptions) {
  return {
    readExplanation: (query: ExplanationQuery) => readExplanation(db, clock, policy, query),
    readChangePage: (query: ChangePageQuery) => readChangePage(db, query),
    customers: {
      readAccesses: (query: AccessesQuery) => readAccesses(db, clock, query),
      readGrants: (query: Omit<AccessesQuery, 'at'>) => readGrants(db, clock, query),
      knownProducts: (environment: Environment, productIds: readonly string[]) =>
        knownProducts(db, environment, productIds),
      findByReference: (environment: Environment, value: string, page: IdPage) =>
        findCustomersByReference(db, environment, { name: reference, value }, page),
      findByReferences: (environment: Environment, values: readonly string[]) =>
        findCustomersByReferences(db, environment, reference, values),
      findByDetail: (environment: Environment, lookup: CustomerLookup, page: IdPage) =>
        findCustomers(db, environment, lookup, page),
      readCustomer: (query: PersonKey) => readKnownCustomer(db, clock, query),
      readProductCustomers: (query: ProductCustomersQuery) => readProductCustomers(db, clock, query),
    },
    storedEvents: {
      readEventPage: (query: EventPageQuery) => readEventPage(db, query),
      readEvent: (query: EventQuery) => readEvent(db, query),
      readEventBody: (query: EventBodyQuery) => readEventBody(db, query),
    },
  }
}
