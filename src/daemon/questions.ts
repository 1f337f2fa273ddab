/* What the routes that only ask need: the same for a daemon, and for a command that finds none. */

import type { Kysely } from 'kysely'
import { policyFrom } from '../config/policy.js'
import type { Config } from '../config/schema.js'
import { catalogOf } from '../entitlements/features.js'
import type { QuestionDeps } from '../handlers/routes.js'
import type { SyncQuestions } from '../handlers/sync.js'
import { readExportPage } from '../history/export.js'
import { MANUAL_ENDPOINT } from '../ingest/prepare.js'
import type { SyncState } from '../operations/metrics.js'
import { PLATFORM_NAMES } from '../provider/accounts.js'
import type { Environment } from '../provider/event.js'
import { readAccess } from '../store/access.js'
import { loadTargetRefs } from '../store/memberships.js'
import { findMessages } from '../store/message-log.js'
import { storeQuestions } from '../store/questions.js'
import { readJob } from '../store/recompute.js'
import type { Database, Db } from '../store/schema.js'
import { policyFingerprint, policyInForce } from '../store/settings.js'
import { readWebhooks } from '../sync/outbound/outbound.js'
import { createQuestions, readStatus } from '../sync/plan.js'
import { targetsOf } from '../sync/target.js'

/** The config in use, which a reload replaces, and what follows from it. */
export type CurrentConfig = ReturnType<typeof createCurrentConfig>

export function createCurrentConfig(first: Config) {
  let config = first
  let catalog = catalogOf(first.products)
  let note: string | null = null
  return {
    now: () => config,
    catalog: () => catalog,
    endpointNamed: (name: string) => config.endpoints.find((endpoint) => endpoint.name === name),
    endpointNames: () => config.endpoints.map(({ name }) => name),
    /** By name: what reading their events again depends on. */
    endpointRules: () =>
      Object.fromEntries(
        config.endpoints.map(({ name, environment, aheadAtMostMs }) => [
          name,
          { environment, aheadAtMostMs },
        ]),
      ),
    /** How the config file differs from it; null: it does not. */
    note: () => note,
    setNote(next: string | null): void {
      note = next
    },
    replace(next: Config): void {
      config = next
      catalog = catalogOf(next.products)
    },
  }
}

/** What differs between a daemon and a command that finds none. */
type Given = Pick<QuestionDeps, 'keptAnswers' | 'comparisons' | 'replays' | 'sync' | 'keys' | 'clock'>

/** @param config what a reload does not change is read from it */
export function questionDeps(
  db: Db,
  { identity, policy }: Config,
  current: CurrentConfig,
  given: Given,
): QuestionDeps & { readonly environments: () => readonly Environment[] } {
  const { clock } = given
  return {
    ...given,
    catalog: current.catalog,
    endpointNamed: current.endpointNamed,
    endpointNames: () => [...current.endpointNames(), MANUAL_ENDPOINT],
    environments: () => current.now().endpoints.map(({ environment }) => environment),
    ...storeQuestions(db, clock, { policy, reference: identity.ref }),
    readAccess: (query) => readAccess(db, clock, query),
    readExportPage: (filter, place) => readExportPage(db, filter, place),
    policies: {
      configuredPolicy: () => {
        const configured = current.now().policy
        return { policy: configured, fingerprint: policyFingerprint(configured) }
      },
      policyInForce: () => policyInForce(db),
      policyIn: policyFrom,
      unfinishedAt: async () => {
        const job = await readJob(db)
        if (job === 'newer') return 0
        return job?.endpoints === null ? job.reached : null
      },
    },
  }
}

/** The state of sync as the database alone tells it: only a running daemon knows the platforms' last answers. */
export function storedSync(db: Kysely<Database>, config: Config, clock: () => number): SyncQuestions {
  const { products, sync } = config
  const questionOf = async (environments?: readonly Environment[]) => {
    const targets = targetsOf(products, await loadTargetRefs(db))
    return {
      targets: targets.filter(({ environment }) => environments?.includes(environment) ?? true),
      bound: sync.removals,
      now: clock(),
    }
  }
  const isOk = () => ({ state: 'ok', until: null, reason: null }) as const
  return {
    ...createQuestions(db, questionOf),
    messages: (filter, page) => findMessages(db, filter, page),
    webhooks: () => sync.webhooks.map(({ id }) => id),
    async status(environments): Promise<SyncState> {
      const platforms = PLATFORM_NAMES.filter((name) => sync[name] !== null)
      return {
        ...(await readStatus(db, await questionOf(environments), platforms, isOk, null)),
        webhooks: await readWebhooks(db, sync.webhooks, environments),
        unreachable: [],
        leads: false,
      }
    },
  }
}
