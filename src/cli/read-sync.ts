import type { Kysely } from 'kysely'
import type { Config } from '../config/types.js'
import { planJson, type SyncPlanJson, type SyncStatusJson } from '../handlers/sync-json.js'
import { requireTargets, type SyncState } from '../handlers/sync-questions.js'
import { syncStateJson } from '../handlers/sync-status.js'
import type { Environment } from '../provider/event.js'
import { loadTargetRefs } from '../store/membership-lists.js'
import { countMessages } from '../store/messages.js'
import type { Database } from '../store/schema.js'
import { loadSyncSettings } from '../store/sync-settings.js'
import { originOf } from '../sync/adapters/webhook/address.js'
import { readPlan } from '../sync/read-plan.js'
import { readMemberships, readStatus } from '../sync/read-status.js'
import type { MembershipPage, MembershipQuery } from '../sync/sync.js'
import { targetsOf } from '../sync/targets.js'
import type { CliContext } from './context.js'
import { readStore } from './read-store.js'

/** What a daemon would tell of the configured database, but for what the platforms last said. */
export function readSyncStatus(
  config: Config,
  { now }: CliContext,
  environment?: Environment,
): Promise<SyncStatusJson> {
  return readStore(config, async (db) => syncStateJson(await readSyncState(db, config, now(), environment)))
}

/** How it stands by the database alone: what the platforms last said, only a running daemon knows. */
export async function readSyncState(
  db: Kysely<Database>,
  config: Config,
  now: number,
  environment?: Environment,
): Promise<SyncState> {
  const { discord, telegram, webhook } = config.sync
  const platforms = [
    ...(discord === null ? [] : ['discord' as const]),
    ...(telegram === null ? [] : ['telegram' as const]),
  ]
  return {
    sync: await readStatus(db, {
      ...(await context(db, config, now, environment)),
      platforms,
      stateOf: () => ({ kind: 'ok' }),
      checked: null,
    }),
    outbound: webhook === null ? null : { origin: originOf(webhook), messages: await countMessages(db) },
  }
}

/** The calls that a daemon would make. */
export function readSyncPlan(
  config: Config,
  { now }: CliContext,
  environment?: Environment,
): Promise<SyncPlanJson> {
  return readStore(config, async (db) => {
    const { paused } = await loadSyncSettings(db)
    return planJson(
      await readPlan(db, { ...(await requiredContext(db, config, now(), environment)), paused }),
    )
  })
}

export function readSyncMemberships(
  config: Config,
  query: MembershipQuery,
  { now }: CliContext,
): Promise<MembershipPage> {
  return readStore(config, async (db) => readMemberships(db, query, await requiredContext(db, config, now())))
}

/** @throws LatchkeyError `sync_off` */
async function requiredContext(db: Kysely<Database>, config: Config, now: number, environment?: Environment) {
  const targets = targetsOf(config.products, await loadTargetRefs(db))
  await requireTargets({ hasTargets: async () => targets.length > 0 })
  return context(db, config, now, environment)
}

async function context(
  db: Kysely<Database>,
  { products, sync }: Config,
  now: number,
  environment?: Environment,
) {
  const targets = targetsOf(products, await loadTargetRefs(db))
  return {
    targets: targets.filter((one) => environment === undefined || one.environment === environment),
    bound: sync.removals,
    now,
  }
}
