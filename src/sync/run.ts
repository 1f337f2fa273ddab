import { LatchkeyError } from '../errors.js'
import type { Environment } from '../provider/event.js'
import { ENVIRONMENTS } from '../store/environments.js'
import type { WriteSync } from '../store/sync-writes.js'
import type { DriveResult } from './drive.js'
import { inEach, retryAll } from './retry-all.js'
import type { PlannedCall, RunOptions, SyncPlan, SyncRun } from './sync.js'

/** Bounds how long one transaction keeps arriving deliveries waiting. */
const MAX_PER_TRANSACTION = 500

export interface RunDeps {
  readonly absorb: () => Promise<void>
  readonly plan: (environments: readonly Environment[]) => Promise<SyncPlan>
  readonly writeSync: WriteSync
  readonly reopen: () => void
  readonly sweep: () => Promise<void>
  readonly work: () => Promise<void>
  /** Whether its platform, or its target, waits for somebody to act. */
  readonly isStopped: (call: PlannedCall) => boolean
  readonly isPaused: () => boolean
}

type Counts = Record<DriveResult, number>

const NONE: Readonly<Counts> = {
  given: 0,
  taken: 0,
  unchanged: 0,
  failed: 0,
  stopped: 0,
  waiting: 0,
  parked: 0,
  overtaken: 0,
}
const RESULTS = Object.keys(NONE) as readonly DriveResult[]

/** Runs that an operator asks for, and what came of everything that was driven meanwhile. */
export function createRun() {
  const counted: Record<Environment, Counts> = { live: { ...NONE }, sandbox: { ...NONE } }
  const totalOf = (environments: readonly Environment[]): Counts => {
    const total = { ...NONE }
    for (const environment of environments) {
      for (const result of RESULTS) total[result] += counted[environment][result]
    }
    return total
  }

  return {
    count(environment: Environment, result: DriveResult): void {
      counted[environment][result] += 1
    },
    /** @throws {LatchkeyError} `plan_changed` */
    async begin(options: RunOptions, deps: RunDeps): Promise<SyncRun> {
      const { environments = ENVIRONMENTS, confirm, retry, sweep } = options
      const before = totalOf(environments)
      await deps.absorb()
      if (confirm !== undefined) await confirmPlan(confirm, environments, deps)
      for (const filter of retry === undefined ? [] : inEach(retry, environments)) {
        await retryAll(deps.writeSync, filter)
      }
      deps.reopen()
      if (sweep === true) await deps.sweep()
      await deps.work()
      const { calls } = await deps.plan(environments)
      const total = totalOf(environments)
      const unconfirmed = calls.filter(({ needsConfirmation }) => needsConfirmation)
      const open = deps.isPaused() ? [] : calls.filter(({ needsConfirmation }) => !needsConfirmation)
      const stopped = open.filter(deps.isStopped)
      return {
        paused: deps.isPaused(),
        given: total.given - before.given,
        taken: total.taken - before.taken,
        unchanged: total.unchanged - before.unchanged,
        failed: total.failed - before.failed,
        waiting: total.waiting - before.waiting,
        parked: total.parked - before.parked,
        unconfirmed: unconfirmed.length,
        stopped: stopped.length,
        left: open.length - stopped.length,
      }
    },
  }
}

/** What was looked at may have been the plan of one environment alone. */
async function confirmPlan(
  confirm: string,
  environments: readonly Environment[],
  { plan, writeSync }: RunDeps,
): Promise<void> {
  const plans = [await plan(environments)]
  for (const environment of environments) plans.push(await plan([environment]))
  const confirmed = plans.find(({ hash }) => hash === confirm)
  if (confirmed === undefined) {
    throw new LatchkeyError(
      'plan_changed',
      'What waits for confirmation is not what was confirmed: look at the plan again.',
    )
  }
  const removals = confirmed.calls
    .filter(({ needsConfirmation }) => needsConfirmation)
    .map(({ environment, target, accountId }) => ({
      key: { environment, target, accountId },
      happening: { kind: 'confirm' as const },
    }))
  for (let i = 0; i < removals.length; i += MAX_PER_TRANSACTION) {
    await writeSync('stepMemberships', removals.slice(i, i + MAX_PER_TRANSACTION))
  }
}
