import type { Logger } from 'pino'
import type { Policy } from '../entitlements/policy.js'
import { LatchkeyError } from '../errors.js'
import { isSamePolicy } from '../store/policy.js'
import type { RebuildProgress } from '../store/rebuild-progress.js'
import type { Rebuild, RebuildSummary } from './rebuild.js'

/** How the last rebuild stands. */
export type RebuildStatus =
  | { readonly state: 'none' }
  /** Before this process was started: given again, it goes on. */
  | { readonly state: 'interrupted'; readonly folded: number }
  | { readonly state: 'running'; readonly folded: number; readonly total: number }
  | { readonly state: 'done'; readonly summary: RebuildSummary }
  | { readonly state: 'failed'; readonly reason: string }

export interface RebuildJobs {
  /**
   * Starts a rebuild under a policy, or joins the one that is running under it.
   * @throws {LatchkeyError} `rebuild_running`: another one is
   */
  start(policy: Policy): RebuildStatus
  status(): Promise<RebuildStatus>
  /** Resolves once none runs; what one has found is kept, for the next to go on from. */
  stop(): Promise<void>
}

export interface RebuildJobsDeps {
  readonly rebuild: Rebuild
  readonly loadProgress: () => Promise<Pick<RebuildProgress, 'folded'> | null>
  readonly log: Logger
}

/** Runs one rebuild at a time, beside everything else. */
export function createRebuildJobs({ rebuild, loadProgress, log }: RebuildJobsDeps): RebuildJobs {
  let status: RebuildStatus = { state: 'none' }
  let running: { readonly policy: Policy; readonly ended: Promise<void> } | null = null
  let isStopping = false

  async function run(policy: Policy): Promise<void> {
    try {
      const summary = await rebuild(policy, {
        onProgress: (folded, total) => {
          status = { state: 'running', folded, total }
        },
        isStopping: () => isStopping,
      })
      status = { state: 'done', summary }
      const { gains, losses, otherwise } = summary
      log.info({ gains, losses, otherwise }, 'rebuilt from the stored events')
    } catch (error) {
      log.error({ err: error }, 'the rebuild failed: what stood before stands')
      const reason = error instanceof LatchkeyError ? error.message : 'The cause is in the log.'
      status = { state: 'failed', reason }
    }
    running = null
  }

  return {
    start(policy) {
      if (running !== null && !isSamePolicy(running.policy, policy)) {
        throw new LatchkeyError('rebuild_running', 'A rebuild under another policy is running: wait for it.')
      }
      if (running === null) {
        status = { state: 'running', folded: 0, total: 0 }
        running = { policy, ended: Promise.resolve().then(() => run(policy)) }
      }
      return status
    },
    async status() {
      const interrupted = await loadProgress()
      if (status.state !== 'none' || interrupted === null) return status
      return { state: 'interrupted', folded: interrupted.folded }
    },
    async stop() {
      isStopping = true
      await running?.ended
    },
  }
}
