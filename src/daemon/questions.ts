import type { Config } from '../config/schema.js'
import type { RouteDeps } from '../handlers/routes.js'
import { readExportPage } from '../history/export.js'
import { readAccess, readAccesses, readGrants, readProductCustomers } from '../store/access.js'
import { readExplanation, readKnownCustomer } from '../store/account.js'
import { changeLogEpoch, formatCursor, latestCursor, readChangePage } from '../store/changes.js'
import { findCustomers, findCustomersByReference, findCustomersByReferences } from '../store/customers.js'
import { knownProducts } from '../store/entitlements.js'
import { readEvent, readEventBody, readEventPage } from '../store/event-questions.js'
import type { Db } from '../store/schema.js'

type Questions = Pick<
  RouteDeps,
  'readAccess' | 'readExplanation' | 'readChangePage' | 'customers' | 'storedEvents'
>

/** What the routes ask of a store. */
export function questionsOf(db: Db, { identity, policy }: Config, clock: () => number) {
  return {
    readAccess: (query) => readAccess(db, clock, query),
    readExplanation: (query) => readExplanation(db, clock, policy, query),
    readChangePage: (query) => readChangePage(db, query),
    customers: {
      readAccesses: (query) => readAccesses(db, clock, query),
      readGrants: (query) => readGrants(db, clock, query),
      knownProducts: ({ environment, productIds }) => knownProducts(db, environment, productIds),
      findByReference: ({ environment, reference, page }) =>
        findCustomersByReference(db, environment, { name: identity.ref, value: reference }, page),
      findByReferences: ({ environment, references }) =>
        findCustomersByReferences(db, environment, identity.ref, references),
      findByDetail: ({ environment, lookup, page }) => findCustomers(db, environment, lookup, page),
      readCustomer: (query) => readKnownCustomer(db, clock, query),
      readProductCustomers: (query) => readProductCustomers(db, clock, query),
    },
    storedEvents: {
      readEventPage: (query) => readEventPage(db, query),
      readEvent: (query) => readEvent(db, query),
      readEventBody: (query) => readEventBody(db, query),
      readExportPage: (filter, place) => readExportPage(db, filter, place),
    },
    /** The end of the change log. */
    readCursor: async () => formatCursor(await changeLogEpoch(db), await latestCursor(db)),
  } satisfies Questions & { readonly readCursor: () => Promise<string> }
}
