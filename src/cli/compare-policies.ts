import type { Config } from '../config/types.js'
import { type SummaryJson, summaryJson } from '../handlers/rebuild-json.js'
import type { Environment } from '../provider/event.js'
import { createRecompute } from '../recompute/recompute.js'
import type { CliContext } from './context.js'
import { readStore } from './read-store.js'

export interface Comparison {
  readonly environments: readonly Environment[]
  /** How many differences are named; all are counted. */
  readonly sampleSize: number
}

/** Whose access would change under the configured policy. */
export function comparePolicies(
  config: Config,
  { now }: CliContext,
  { environments, sampleSize }: Comparison,
): Promise<SummaryJson> {
  return readStore(config, async (db) => {
    const plan = { scope: environments, endpoints: null, policy: config.policy, mode: 'compare' } as const
    const { access } = await createRecompute({ db, clock: now })(plan, { sampleSize })
    return summaryJson(access.all)
  })
}
