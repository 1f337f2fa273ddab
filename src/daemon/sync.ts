import type { Config } from '../config/schema.js'
import type { SyncControl } from '../handlers/sync/deps.js'
import { addSyncMetrics, type SyncState } from '../operations/metrics.js'
import { startSweeps } from '../operations/schedule.js'
import type { Environment } from '../provider/event.js'
import { ENVIRONMENTS } from '../store/schema.js'
import { isSyncPaused, loadSyncSettings } from '../store/sync-state.js'
import type { Tools } from '../sync/context.js'
import { createOutages, isPlatform, type Outage } from '../sync/outages.js'
import { createOutbound } from '../sync/outbound/outbound.js'
import { createOutgoing } from '../sync/outgoing.js'
import { createSync } from '../sync/sync.js'
import type { Opened } from './open.js'
import { createPlatforms } from './platforms.js'
import type { TelegramDeps } from './telegram.js'

/** Everything outside that follows access: roles, groups, and the outbound webhooks. */
export async function createSyncService(
  { config, store, db, current: running, metrics: { registry }, started, ...opened }: Opened,
  acts: Pick<TelegramDeps, 'readAccess' | 'performAct'>,
) {
  const { tracing, clock, random, log } = opened
  const { writeSync } = store.shared ?? store.writer
  const isLeader = store.shared?.isLeader ?? (() => true)
  const tools: Tools = { db, writeSync, clock, random, log, ...(tracing && { post: tracing.post }) }
  let current = config
  async function status(environments: readonly Environment[] = ENVIRONMENTS): Promise<SyncState> {
    const webhooks = await outbound.status(environments)
    // An address is for both environments: one of them is told of it if its own messages wait there.
    const isTold = ({ platform }: Outage): boolean =>
      isPlatform(platform) ||
      environments.length === ENVIRONMENTS.length ||
      webhooks.some(
        ({ id, waiting, lastError }) => `webhook:${id}` === platform && waiting > 0 && lastError !== null,
      )
    const ownReason = ({ platform, reason }: Outage): string =>
      webhooks.find(({ id }) => `webhook:${id}` === platform)?.lastError?.reason ?? reason
    const told = (await currentOutages()).filter(isTold)
    return {
      ...(await sync.status(environments)),
      webhooks,
      unreachable: told.map((one) => ({ ...one, reason: ownReason(one) })),
      leads: isLeader(),
    }
  }
  const outages = createOutages(clock, log)
  /** Nothing while sync is paused, since nothing is called then. */
  const currentOutages = async () => ((await isSyncPaused(db)) ? [] : outages.current())
  const metrics = addSyncMetrics(registry, status)
  const outgoing = createOutgoing(isLeader)
  const queued = createOutgoing(() => sync.mayCall())
  const platforms = createPlatforms({
    ...tools,
    ...acts,
    tracing,
    isLeader,
    outages,
    outgoing,
    queued,
    products: () => current.products,
    accountAsked: (target, accountId) => sync.accountAsked(target, accountId),
    recheck: () => sync.recheck(),
  })
  const sync = await createSync({
    ...tools,
    products: current.products,
    platforms: (await platforms.prepare(current.sync))(),
    removals: () => current.sync.removals,
    onAttempt: ({ adapter }, result) => metrics.driven(adapter, result),
    outages,
    isLeader,
  })
  const outbound = await createOutbound({
    ...tools,
    addresses: () => current.sync.webhooks,
    featuresOf: (productId) => running.forRoutes.catalog().featuresOf(productId),
    isPaused: async () => !isLeader() || isSyncPaused(db),
    reachOf: (id) => outages.of(`webhook:${id}`),
    outgoing,
  })
  const sweep = async (): Promise<void> => {
    if (isLeader()) await sync.sweep()
  }
  const sweeps = startSweeps(tools, sweep, () => current.sync.sweepEveryMs)
  /** A restore pauses sync, whatever is configured. */
  async function warnIfPaused(): Promise<void> {
    const { pausedAt } = await loadSyncSettings(db)
    if (pausedAt === null || (current.sync.webhooks.length === 0 && (await sync.targets()).length === 0))
      return
    log.warn(
      { since: new Date(pausedAt).toISOString() },
      'sync is paused: no role or group changes, and no webhook is sent; run `latchkey sync resume`',
    )
  }
  await warnIfPaused()
  if (isLeader()) platforms.start()
  let reloading = Promise.resolve()
  let isStopped = false

  async function follow(config: Config): Promise<void> {
    const use = await platforms.prepare(config.sync)
    if (current !== config) return
    sync.reload(config.products, use())
    if (isLeader()) platforms.start()
    await outbound.reload()
  }

  started.add('webhookTests', outbound.endTests)
  // Starts nothing more, and waits a few seconds for calls in flight.
  started.add('following', async () => {
    isStopped = true
    // The caller of `reload` gets its error.
    await reloading.catch(() => {})
    await Promise.all([platforms.stop(), sync.stop(), outbound.stop()])
    await sweeps.stop()
  })
  return {
    control: {
      ...sync,
      async resume() {
        await sync.resume()
        outbound.wake()
      },
      status,
      replay: outbound.replay,
      test: outbound.test,
      webhooks: () => current.sync.webhooks.map(({ id }) => id),
      async run(options) {
        const { environments = ENVIRONMENTS, retry } = options
        const messages = retry === undefined ? 0 : await outbound.retry({ ...retry, environments })
        return { ...(await sync.run(options)), messages, leads: isLeader() }
      },
    } satisfies SyncControl as SyncControl,
    /** The current outages. */
    outages: currentOutages,
    /** Null: none is configured. */
    messenger: platforms.messenger,
    /** Access or accounts may have changed. Cheap, and never throws. */
    wake(): void {
      if (!isLeader()) return
      sync.wake()
      outbound.wake()
    },
    /** Resolves once this config, or a later one, is in use. */
    reload(config: Config): Promise<void> {
      for (const { id, url } of current.sync.webhooks) {
        const next = config.sync.webhooks.find((one) => one.id === id)
        if (next?.url !== url || next.disabled) outages.forget(`webhook:${id}`)
      }
      current = config
      reloading = follow(config)
      return reloading
    },
    /** Begins to call and to send, or ends it: whether this instance leads has changed. */
    async onLeaderChange(): Promise<void> {
      if (isStopped) return
      if (!isLeader()) {
        outgoing.end()
        queued.end()
        await platforms.stop()
      }
      await follow(current)
    },
  }
}
