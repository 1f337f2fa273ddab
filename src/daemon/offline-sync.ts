import type { Kysely } from 'kysely'
import type { Config } from '../config/schema.js'
import type { SyncState } from '../operations/metrics.js'
import { PLATFORM_NAMES } from '../provider/accounts.js'
import type { Environment } from '../provider/event.js'
import { loadTargetRefs } from '../store/memberships.js'
import { findMessages } from '../store/message-log.js'
import type { Database } from '../store/schema.js'
import { readWebhooks, replay } from '../sync/outbound/outbound.js'
import { createQuestions, readStatus } from '../sync/plan.js'
import { targetsOf } from '../sync/target.js'
import type { SyncService, SyncServiceDeps } from './sync.js'

/** Answers a command without a daemon from the database alone: gives, takes and sends nothing. */
export function createOfflineSync({
  config,
  db,
  writeSync,
  clock,
}: Pick<SyncServiceDeps, 'config' | 'db' | 'writeSync' | 'clock'>): SyncService {
  const needsDaemon = () => Promise.reject(new Error('only a running daemon calls the platforms'))
  return {
    questions: {
      ...createQuestions(db, (environments) => questionOf(db, config, clock(), environments)),
      status: (environments) => readSyncState(db, config, clock(), environments),
      messages: (filter, page) => findMessages(db, filter, page),
      replay: (filter) => replay({ db, writeSync }, config.sync.webhooks, filter),
      test: needsDaemon,
      webhooks: () => config.sync.webhooks.map(({ id }) => id),
      pause: () => writeSync('setSyncPaused', true),
      resume: () => writeSync('setSyncPaused', false),
      check: needsDaemon,
      run: needsDaemon,
    },
    outages: async () => [],
    messenger: () => null,
    wake() {},
    async reload() {},
    async onLeaderChange() {},
    async endTests() {},
    async stop() {},
  }
}

/** The state in the database alone: only a running daemon knows the platforms' last answers. */
export async function readSyncState(
  db: Kysely<Database>,
  config: Config,
  now: number,
  environments?: readonly Environment[],
): Promise<SyncState> {
  const platforms = PLATFORM_NAMES.filter((name) => config.sync[name] !== null)
  const question = await questionOf(db, config, now, environments)
  const isOk = () => ({ state: 'ok', until: null, reason: null }) as const
  return {
    ...(await readStatus(db, question, platforms, isOk, null)),
    webhooks: await readWebhooks(db, config.sync.webhooks, environments),
    unreachable: [],
    leads: false,
  }
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
