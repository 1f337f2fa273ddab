import type { Kysely } from 'kysely'
import type { Config } from '../config/schema.js'
import type { SyncState } from '../operations/metrics.js'
import type { Environment } from '../provider/event.js'
import { findLongestWait, loadTargetRefs } from '../store/memberships.js'
import { countMessages } from '../store/messages.js'
import type { Database } from '../store/schema.js'
import { isSyncPaused } from '../store/sync-state.js'
import type { Outage } from '../sync/outages.js'
import { originOf } from '../sync/outbound/message.js'
import { readMemberships, readPlan, readStatus } from '../sync/plan.js'
import { OUTAGE_CODES } from '../sync/platform.js'
import { ADAPTER_NAMES, targetsOf } from '../sync/target.js'
import type { Following, FollowingDeps } from './sync.js'

/** Answers by the database alone, where a command that finds no daemon asks: nothing is given, taken or sent. */
export function createResting({
  config,
  db,
  writeSync,
  clock,
}: Pick<FollowingDeps, 'config' | 'db' | 'writeSync' | 'clock'>): Following {
  const needsDaemon = () => Promise.reject(new Error('only a running daemon calls the platforms'))
  return {
    questions: {
      memberships: async (query) => readMemberships(db, query, await questionOf(db, config, clock())),
      plan: async (environments) =>
        readPlan(db, {
          ...(await questionOf(db, config, clock(), environments)),
          paused: await isSyncPaused(db),
        }),
      status: (environments) => readSyncState(db, config, clock(), environments),
      hasTargets: async () => (await questionOf(db, config, clock())).targets.length > 0,
      pause: () => writeSync('setSyncPaused', true),
      resume: () => writeSync('setSyncPaused', false),
      check: needsDaemon,
      run: needsDaemon,
    },
    outages: () => storedOutages(db, config, clock()),
    messenger: () => null,
    wake() {},
    async reload() {},
    async stop() {},
  }
}

/** How it stands by the database alone: what the platforms last said, only a running daemon knows. */
export async function readSyncState(
  db: Kysely<Database>,
  config: Config,
  now: number,
  environments?: readonly Environment[],
): Promise<SyncState> {
  const { discord, telegram, webhook } = config.sync
  const platforms = [
    ...(discord === null ? [] : ['discord' as const]),
    ...(telegram === null ? [] : ['telegram' as const]),
  ]
  return {
    sync: await readStatus(db, {
      ...(await questionOf(db, config, now, environments)),
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
    const failed = await findLongestWait(db, name, OUTAGE_CODES)
    if (failed !== null) outages.push({ name, since: null, reason: failed.error?.message ?? '' })
  }
  const pending = webhook === null ? [] : (await countMessages(db)).filter(({ parked }) => parked === null)
  for (const { failingSince, lastError } of pending) {
    if (failingSince === null || now - failingSince < OUTAGE_AFTER_MS) continue
    outages.push({ name: 'webhook', since: failingSince, reason: lastError ?? '' })
  }
  return outages
}

async function questionOf(
  db: Kysely<Database>,
  { products, sync }: Config,
  now: number,
  environments?: readonly Environment[],
) {
  const targets = targetsOf(products, await loadTargetRefs(db))
  return {
    targets: targets.filter(({ environment }) => environments?.includes(environment) ?? true),
    bound: sync.removals,
    now,
  }
}
