import type { Environment } from '../provider/event.js'
import { ENVIRONMENTS } from '../store/environments.js'
import type { MembershipKey } from '../store/membership.js'
import type { RetryFilter } from '../store/memberships.js'
import type { WriteSync } from '../store/sync-writes.js'

/** The same filter for each of these environments that it means; left out: both. */
export function inEach(
  filter: RetryFilter,
  environments: readonly Environment[] = ENVIRONMENTS,
): readonly RetryFilter[] {
  return environments
    .filter((environment) => (filter.environment ?? environment) === environment)
    .map((environment) => ({ ...filter, environment }))
}

/** Makes due now, a stretch at a time, all that a filter means; each once, should it fail again meanwhile. */
export async function retryAll(writeSync: WriteSync, filter: RetryFilter): Promise<void> {
  let after: MembershipKey | null = null
  do after = await writeSync('retryMemberships', { filter, after })
  while (after !== null)
}
