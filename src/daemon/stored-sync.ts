import type { Config } from '../config/schema.js'
import type { SyncQuestions } from '../handlers/sync/deps.js'
import { PLATFORM_NAMES } from '../provider/accounts.js'
import type { Environment } from '../provider/event.js'
import { loadTargetRefs } from '../store/memberships.js'
import type { Db } from '../store/schema.js'
import { readWebhooks } from '../sync/outbound/outbound.js'
import { readStatus } from '../sync/plan.js'
import { createQuestions } from '../sync/questions.js'
import { targetsOf } from '../sync/target.js'

/** The state of sync as the database alone tells it: only a running daemon knows the platforms' last answers. */
export function storedSync(db: Db, { products, sync }: Config, clock: () => number): SyncQuestions {
  const questionOf = async (environments?: readonly Environment[]) => {
    const targets = targetsOf(products, await loadTargetRefs(db))
    return {
      targets: targets.filter(({ environment }) => environments?.includes(environment) ?? true),
      products,
      bound: sync.removals,
      stateOf: () => ({ state: 'ok', until: null, reason: null }) as const,
      now: clock(),
    }
  }
  const platforms = PLATFORM_NAMES.filter((name) => sync[name] !== null)
  return {
    ...createQuestions(db, questionOf),
    webhooks: () => sync.webhooks.map(({ id }) => id),
    status: async (environments) => ({
      ...(await readStatus(db, await questionOf(environments), platforms, null)),
      webhooks: await readWebhooks(db, sync.webhooks, environments),
      unreachable: [],
      leads: false,
    }),
  }
}
