import type { Config } from '../config/types.js'
import { type SummaryJson, summaryJson } from '../handlers/rebuild-json.js'
import { createDifferenceCounter } from '../ingest/access-difference.js'
import { policyDifferences } from '../ingest/policy-difference.js'
import type { Environment } from '../provider/event.js'
import { readStore } from './read-store.js'

export interface Comparison {
  readonly environments: readonly Environment[]
  /** How many differences are named; all are counted. */
  readonly sampleSize: number
  /** Epoch milliseconds. */
  readonly now: number
}

/** Whose access would change under the configured policy. */
export function comparePolicies(
  config: Config,
  { environments, sampleSize, now }: Comparison,
): Promise<SummaryJson> {
  const counter = createDifferenceCounter(sampleSize)
  return readStore(config, async (db) => {
    for (const one of environments) {
      for await (const difference of policyDifferences(db, one, config.policy, now)) counter.add(difference)
    }
    return summaryJson(counter.summary())
  })
}
