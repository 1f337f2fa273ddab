import { createAccessReader } from '../store/access-reader.js'
import { createExplanationReader } from '../store/explanation-reader.js'
import type { ReadAccess } from './check.js'
import type { ReadExplanation } from './explain.js'
import { readStore } from './read-store.js'

/** Reads who may use what from the database file itself. */
export function createFileReadAccess(now: () => number): ReadAccess {
  return (config, query) => readStore(config, (db) => createAccessReader(db, now)(query))
}

/** Explains from the database file itself. */
export function createFileReadExplanation(now: () => number): ReadExplanation {
  return (config, query) => readStore(config, (db) => createExplanationReader(db, now, config.policy)(query))
}
