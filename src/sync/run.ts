import { LatchkeyError } from '../errors.js'
import type { WriteSync } from '../store/sync-writes.js'
import type { DriveResult } from './drive.js'
import { retryAll } from './retry-all.js'
import type { RunOptions, SyncPlan, SyncRun } from './sync.js'

/** Bounds how long one transaction keeps arriving deliveries waiting. */
const MAX_PER_TRANSACTION = 500

export interface RunDeps {
  readonly absorb: () => Promise<void>
  readonly plan: () => Promise<SyncPlan>
  readonly writeSync: WriteSync
  readonly reopen: () => void
  readonly sweep: () => Promise<void>
  readonly work: () => Promise<void>
  readonly isPaused: () => boolean
}

type Counts = Record<DriveResult, number>

/** Runs that an operator asks for, and what came of everything that was driven meanwhile. */
export function createRun() {
  const total: Counts = { given: 0, taken: 0, unchanged: 0, failed: 0, waiting: 0, parked: 0, overtaken: 0 }

  return {
    count(result: DriveResult): void {
      total[result] += 1
    },
    /** @throws {LatchkeyError} `plan_changed` */
    async begin({ confirm, retry, sweep }: RunOptions, deps: RunDeps): Promise<SyncRun> {
      const before = { ...total }
      await deps.absorb()
      if (confirm !== undefined) await confirmPlan(confirm, deps)
      if (retry !== undefined) await retryAll(deps.writeSync, retry)
      deps.reopen()
      if (sweep === true) await deps.sweep()
      await deps.work()
      const { calls } = await deps.plan()
      return {
        paused: deps.isPaused(),
        given: total.given - before.given,
        taken: total.taken - before.taken,
        unchanged: total.unchanged - before.unchanged,
        failed: total.failed - before.failed,
        waiting: total.waiting - before.waiting,
        parked: total.parked - before.parked,
        unconfirmed: calls.filter(({ needsConfirmation }) => needsConfirmation).length,
        left: deps.isPaused() ? 0 : calls.filter(({ needsConfirmation }) => !needsConfirmation).length,
      }
    },
  }
}

async function confirmPlan(confirm: string, { plan, writeSync }: RunDeps): Promise<void> {
  const { hash, calls } = await plan()
  if (hash !== confirm) {
    throw new LatchkeyError(
      'plan_changed',
      'What waits for confirmation is not what was confirmed: look at the plan again.',
    )
  }
  const removals = calls
    .filter(({ needsConfirmation }) => needsConfirmation)
    .map(({ environment, target, accountId }) => ({ environment, target, accountId }))
  for (let i = 0; i < removals.length; i += MAX_PER_TRANSACTION) {
    await writeSync('confirmRemovals', removals.slice(i, i + MAX_PER_TRANSACTION))
  }
}
