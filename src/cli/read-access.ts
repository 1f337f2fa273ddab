import type { Config } from '../config/types.js'
import type { Explanation } from '../entitlements/explain.js'
import type { AccessAnswer, KnownCustomer } from '../entitlements/model.js'
import { type AccessQuery, createAccessReader } from '../store/access.js'
import {
  type CustomerQuery,
  createExplanationReader,
  createKnownCustomerReader,
  type ExplanationQuery,
} from '../store/account.js'
import type { CliContext } from './context.js'
import { readStore } from './read-store.js'

/** Reads who may use what from the configured database, beside a running daemon or with none. */
export function readAccess(config: Config, query: AccessQuery, { now }: CliContext): Promise<AccessAnswer> {
  return readStore(config, (db) => createAccessReader(db, now)(query))
}

/** Explains from the configured database, beside a running daemon or with none. */
export function readExplanation(
  config: Config,
  query: ExplanationQuery,
  { now }: CliContext,
): Promise<Explanation> {
  return readStore(config, (db) => createExplanationReader(db, now, config.policy)(query))
}

/** Reads what is known of a person from the configured database, beside a running daemon or with none. */
export function readKnownCustomer(
  config: Config,
  query: CustomerQuery,
  { now }: CliContext,
): Promise<KnownCustomer | null> {
  return readStore(config, (db) => createKnownCustomerReader(db, now)(query))
}
