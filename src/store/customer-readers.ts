import type { Kysely } from 'kysely'
import type { Environment } from '../provider/event.js'
import {
  createAccessesReader,
  createProductCustomersReader,
  type ReadAccesses,
  type ReadProductCustomers,
} from './access.js'
import { createKnownCustomerReader, type ReadKnownCustomer } from './account.js'
import { createChangePageReader, type ReadChangePage } from './changes.js'
import { findCustomersByReference, findCustomersByReferences } from './customer-references.js'
import { type CustomerLookup, findCustomers } from './customers.js'
import type { IdPage } from './keys.js'
import type { Database } from './schema.js'

/** What is asked about customers. A reference is the value of the merchant's own id, whose name the config has. */
export interface CustomerReaders {
  readonly readAccesses: ReadAccesses
  /** Ids of customers, in order. */
  readonly findByReference: (query: {
    readonly environment: Environment
    readonly reference: string
    readonly page: IdPage
  }) => Promise<readonly string[]>
  /** By reference; one that nobody has is not in the map. */
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
  readonly readCustomer: ReadKnownCustomer
  readonly readProductCustomers: ReadProductCustomers
  readonly readChangePage: ReadChangePage
}

/** @param referenceName `externalRef` or `metadata.<key>` */
export function createCustomerReaders(
  db: Kysely<Database>,
  clock: () => number,
  referenceName: string,
): CustomerReaders {
  const readAccesses = createAccessesReader(db, clock)
  return {
    readAccesses,
    findByReference: ({ environment, reference, page }) =>
      findCustomersByReference(db, environment, referenceName, reference, page),
    findByReferences: ({ environment, references }) =>
      findCustomersByReferences(db, environment, referenceName, references),
    findByDetail: ({ environment, lookup, page }) => findCustomers(db, environment, lookup, page),
    readCustomer: createKnownCustomerReader(db, clock),
    readProductCustomers: createProductCustomersReader(db, readAccesses),
    readChangePage: createChangePageReader(db),
  }
}
