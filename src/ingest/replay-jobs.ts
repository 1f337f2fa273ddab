import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import type { EventFilter } from '../entitlements/stored-event.js'
import { isLatchkeyError, LatchkeyError } from '../errors.js'
import type { RehearsalReport, Rehearse } from './rehearse.js'
import { isSameMeaning, type Replay, type ReplayOrder, type ReplayReport } from './replay.js'
import { brokenOff, createWorkRate, finished, type WorkRate } from './work-rate.js'

/** Those before are forgotten: what a replay changed is in the change log. */
const MAX_REMEMBERED = 20

/** A replay of this process. Instants are epoch milliseconds. */
export interface ReplayStatus {
  readonly id: string
  readonly filter: EventFilter
  /** On a copy of the store, which is thrown away. */
  readonly dryRun: boolean
  readonly startedAt: number
  readonly progress: WorkRate
  readonly outcome:
    | { readonly state: 'running' }
    | { readonly state: 'done'; readonly endedAt: number; readonly report: ReplayReport | RehearsalReport }
    | { readonly state: 'stopped' | 'failed'; readonly endedAt: number; readonly reason: string }
}

export interface ReplayJobs {
  /**
   * Starts a replay, or joins the one that is running if it is the same.
   * @throws {LatchkeyError} `replay_running`: another one is
   */
  start(asked: { readonly filter: EventFilter; readonly dryRun: boolean }): ReplayStatus
  /** The newest first. */
  list(): readonly ReplayStatus[]
  find(id: string): ReplayStatus | null
  /** Resolves once it runs no more; what it has done stands. Null where there is no such replay. */
  stop(id: string): Promise<ReplayStatus | null>
  /** Resolves once none runs. */
  close(): Promise<void>
}

export interface ReplayJobsDeps {
  readonly replay: Replay
  /** The same on a copy. */
  readonly rehearse: Rehearse
  /** Asked at every start, since a reload may change them. */
  readonly endpoints: () => ReplayOrder['endpoints']
  readonly clock: () => number
  readonly log: Logger
}

interface Running {
  readonly id: string
  readonly order: ReplayOrder
  readonly ended: Promise<void>
  isStopping: boolean
}

/** Runs one replay at a time, beside everything else. */
export function createReplayJobs({ replay, rehearse, endpoints, clock, log }: ReplayJobsDeps): ReplayJobs {
  /** In the order in which they were started. */
  const statuses = new Map<string, ReplayStatus>()
  let running: Running | null = null

  function change(id: string, next: (status: ReplayStatus) => Partial<ReplayStatus>): void {
    const status = statuses.get(id)
    if (status !== undefined) statuses.set(id, { ...status, ...next(status) })
  }

  async function run(id: string, order: ReplayOrder): Promise<void> {
    const { measure } = createWorkRate(clock)
    try {
      const report = await (order.isAnew ? rehearse : replay)(order, {
        onProgress: (reached, total) => change(id, () => ({ progress: measure(reached, total) })),
        isStopping: () => running?.isStopping ?? false,
      })
      change(id, ({ progress }) => ({
        progress: finished(progress),
        outcome: { state: 'done', endedAt: clock(), report },
      }))
      const { gains, losses, otherwise } = report.access
      log.info({ ...report.counts, gains, losses, otherwise, dryRun: order.isAnew }, 'replayed stored events')
    } catch (error) {
      change(id, ({ progress }) => ({
        progress: brokenOff(progress),
        outcome: { state: stateAfter(error), endedAt: clock(), reason: reasonOf(error) },
      }))
      if (!isLatchkeyError(error, 'replay_interrupted')) log.error({ err: error }, 'the replay failed')
    }
    running = null
  }

  async function stop(id: string): Promise<void> {
    if (running?.id !== id) return
    running.isStopping = true
    await running.ended
  }

  return {
    start({ filter, dryRun }) {
      const order = { filter, endpoints: endpoints(), isAnew: dryRun }
      if (running !== null && !(running.order.isAnew === dryRun && isSameMeaning(running.order, order))) {
        throw new LatchkeyError('replay_running', 'Another replay is running: wait for it, or stop it.')
      }
      const id = running?.id ?? `rep_${randomUUID()}`
      if (running === null) {
        const { measure } = createWorkRate(clock)
        statuses.set(id, {
          id,
          filter,
          dryRun,
          startedAt: clock(),
          progress: measure(0, 0),
          outcome: { state: 'running' },
        })
        const [oldest] = statuses.keys()
        if (statuses.size > MAX_REMEMBERED && oldest !== undefined) statuses.delete(oldest)
        running = { id, order, ended: Promise.resolve().then(() => run(id, order)), isStopping: false }
      }
      return statuses.get(id) as ReplayStatus
    },
    list: () => [...statuses.values()].reverse(),
    find: (id) => statuses.get(id) ?? null,
    async stop(id) {
      await stop(id)
      return statuses.get(id) ?? null
    },
    async close() {
      if (running !== null) await stop(running.id)
    },
  }
}

function stateAfter(error: unknown): 'stopped' | 'failed' {
  return isLatchkeyError(error, 'replay_interrupted') ? 'stopped' : 'failed'
}

function reasonOf(error: unknown): string {
  return isLatchkeyError(error) ? error.message : 'The cause is in the log.'
}
