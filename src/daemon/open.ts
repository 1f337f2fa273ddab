import { existsSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import type { Logger } from 'pino'
import type { Config } from '../config/schema.js'
import { bytesBeingRead } from '../handlers/body.js'
import { createChangeStream } from '../handlers/change-stream.js'
import type { ControlDeps } from '../handlers/control.js'
import { assertCanListen } from '../handlers/listeners.js'
import { createMetrics } from '../operations/metrics.js'
import { createPulse } from '../operations/pulse.js'
import type { PaymentsApiOptions } from '../payments-api/client.js'
import { changeLogEpoch, formatCursor, logEnd, readChangePage } from '../store/changes.js'
import { policyInForce } from '../store/settings.js'
import { openStore } from '../store/sqlite/store.js'
import type { Tracing } from '../tracing.js'
import { createCurrentConfig } from './current-config.js'
import { createLogWatch } from './log-watch.js'
import { type OpenThread, startWriter } from './start-writer.js'
import type { StartedParts } from './started-parts.js'

const POLICY_DIFFERS =
  'the configured policy differs from the one in force, which stays: see `latchkey policy diff`'

const NO_CONTROL = {
  version: 'unknown',
  reload: () => Promise.reject(new Error('this daemon cannot reload its config')),
  stop: () => {},
}

export interface DaemonDeps {
  /** Epoch milliseconds; the only source of time. */
  readonly clock: () => number
  /** From 0 up to 1; spreads retries. */
  readonly random?: () => number
  /** Waits before a failed call to the payments service is tried again; by default really. */
  readonly sleep?: PaymentsApiOptions['sleep']
  readonly log: Logger
  /** Reloads and stops the daemon. If omitted, it can't be reloaded or stopped over HTTP. */
  readonly control?: Pick<ControlDeps['control'], 'reload' | 'stop'> & { readonly version: string }
  /** If omitted, nothing is traced. */
  readonly tracing?: Tracing | undefined
  /** If omitted, the writer has a thread of its own. */
  readonly openThread?: OpenThread
}

/** What all other parts of a daemon are put together from. */
export type Opened = Awaited<ReturnType<typeof openParts>>

/** Opens the store, and all that only reads it. */
export async function openParts(config: Config, deps: DaemonDeps, started: StartedParts) {
  const { clock, log, tracing, control = NO_CONTROL, random = Math.random, sleep } = deps
  const { promise: failure, resolve: fail } = Promise.withResolvers<unknown>()
  const startedAt = clock()
  const store = await openServed(config, deps, fail)
  started.add('store', store.close)
  if (tracing !== undefined) started.add('tracing', tracing.stop)
  const db = store.reader

  const current = createCurrentConfig(config)
  const policyDiffers = async () => !isDeepStrictEqual(await policyInForce(db), current.now().policy)
  const warnIfPolicyDiffers = async (): Promise<boolean> => {
    const differs = await policyDiffers()
    if (differs) log.warn(POLICY_DIFFERS)
    return differs
  }
  await warnIfPolicyDiffers()

  const metrics = createMetrics(bytesBeingRead)
  metrics.begin(current.endpointNames())
  const pulse = createPulse(clock)
  const changeStream = createChangeStream({
    readChangePage: (query) => readChangePage(db, query),
    async readEnd() {
      const [epoch, { cursor, isBehind }] = [await changeLogEpoch(db), await logEnd(db)]
      return { cursor: formatCursor(epoch, cursor), isBehind }
    },
    catalog: current.forRoutes.catalog,
    log,
  })
  started.add('changeStream', changeStream.stop)
  const wakes = [changeStream.wake]
  const wakeAll = () => {
    for (const one of wakes) one()
  }
  const watch = createLogWatch({
    readEnd: () => logEnd(db),
    wake: wakeAll,
    log,
    elapsed: () => performance.now(),
    later: (run, ms) => setTimeout(run, ms),
  })
  started.add('logWatch', watch.stop)
  return {
    config,
    clock,
    random,
    sleep,
    log,
    tracing,
    control,
    started,
    startedAt,
    failure,
    fail,
    store,
    db,
    current,
    policyDiffers,
    warnIfPolicyDiffers,
    metrics,
    pulse,
    changeStream,
    wakes,
    /** Called after each change that may concern roles, groups or streams. */
    wake: store.shared === null ? wakeAll : watch.note,
  }
}

/** `shared`: what several daemons on one store settle among them; null: there is only this one. */
async function openServed(
  config: Config,
  { clock, log, openThread }: DaemonDeps,
  fail: (error: unknown) => void,
) {
  const { file, postgres } = config.database
  if (postgres !== undefined) {
    const { openSharedStore } = await import('./shared-store.js')
    const shared = await openSharedStore(postgres, config, { clock, log, fail })
    return { ...shared, shared }
  }
  if (!existsSync(file)) await assertCanListen(config.server)
  const openWriter = (own: string) => startWriter({ file: own, clock, onEnded: fail, openThread })
  return { ...(await openStore(file, config.policy, openWriter, fail)), shared: null }
}
