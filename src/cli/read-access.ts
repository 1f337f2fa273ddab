import type { Config } from '../config/types.js'
import type { Explanation } from '../entitlements/explain.js'
import type { AccessAnswer, KnownCustomer } from '../entitlements/model.js'
import { type AccessQuery, readAccess as answerAccess } from '../store/access.js'
import {
  type CustomerQuery,
  type ExplanationQuery,
  readExplanation as explainAccess,
  readKnownCustomer as knownCustomer,
} from '../store/account.js'
import type { CliContext } from './context.js'
import { readStore } from './read-store.js'

/** Reads who may use what from the configured database, beside a running daemon or with none. */
export function readAccess(config: Config, query: AccessQuery, { now }: CliContext): Promise<AccessAnswer> {
  return readStore(config, (db) => answerAccess(db, now, query))
}

/** Explains from the configured database, beside a running daemon or with none. */
export function readExplanation(
  config: Config,
  query: ExplanationQuery,
  { now }: CliContext,
): Promise<Explanation> {
  return readStore(config, (db) => explainAccess(db, now, config.policy, query))
}

/** Reads what is known of a person from the configured database, beside a running daemon or with none. */
export function readKnownCustomer(
  config: Config,
  query: CustomerQuery,
  { now }: CliContext,
): Promise<KnownCustomer | null> {
  return readStore(config, (db) => knownCustomer(db, now, query))
}
