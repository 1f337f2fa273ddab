import type { Kysely } from 'kysely'
import type { Config } from '../config/types.js'
import { requireTargets } from '../handlers/sync.js'
import {
  type SyncPlanJson,
  type SyncState,
  type SyncStatusJson,
  syncStateJson,
} from '../handlers/sync-json.js'
import type { Environment } from '../provider/event.js'
import { findOpenFailure, loadTargetRefs } from '../store/memberships.js'
import { countMessages, findOpenMessageFailure } from '../store/messages.js'
import type { Database } from '../store/schema.js'
import { isSyncPaused, loadSyncSettings } from '../store/sync-state.js'
import type { Outage } from '../sync/outages.js'
import { originOf } from '../sync/outbound/message.js'
import { readMemberships, readPlan, readStatus } from '../sync/plan.js'
import { OUTAGE_CODES } from '../sync/platform.js'
import type { MembershipPage, MembershipQuery } from '../sync/sync.js'
import { ADAPTER_NAMES, targetsOf } from '../sync/target.js'
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
    outages: await storedOutages(db, config, now),
  }
}

/** As a daemon counts it: a failure that is younger may pass by itself. */
const OUTAGE_AFTER_MS = 60_000

/** Who could not be reached when a daemon last tried; since when is stored of the webhook alone. */
async function storedOutages(
  db: Kysely<Database>,
  { sync: { discord, telegram, webhook } }: Config,
  now: number,
): Promise<readonly Outage[]> {
  const outages: Outage[] = []
  if (await isSyncPaused(db)) return outages
  for (const name of ADAPTER_NAMES) {
    if ({ discord, telegram }[name] === null) continue
    const failure = await findOpenFailure(db, name, OUTAGE_CODES)
    if (failure !== null) outages.push({ name, since: null, reason: failure.message })
  }
  const failed = webhook === null ? null : await findOpenMessageFailure(db)
  if (failed !== null && now - failed.since >= OUTAGE_AFTER_MS) {
    outages.push({ name: 'webhook', since: failed.since, reason: failed.error })
  }
  return outages
}

/** The calls that a daemon would make. */
export function readSyncPlan(
  config: Config,
  { now }: CliContext,
  environment?: Environment,
): Promise<SyncPlanJson> {
  return readStore(config, async (db) => {
    const { paused } = await loadSyncSettings(db)
    return readPlan(db, { ...(await requiredContext(db, config, now(), environment)), paused })
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
