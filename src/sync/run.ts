import { LatchkeyError } from '../errors.js'
import { ofEach } from '../provider/accounts.js'
import type { Environment } from '../provider/event.js'
import { untilReadable } from '../store/changes.js'
import { MAX_PER_TRANSACTION, type RetryFilter } from '../store/memberships.js'
import { ENVIRONMENTS } from '../store/schema.js'
import type { SyncContext } from './context.js'
import type { SyncPlan } from './plan.js'
import { type AttemptResult, COUNTED } from './reconcile.js'
import { retryAll } from './sweep.js'
import type { SyncTarget } from './target.js'
import { stepOf } from './writes.js'

export interface RunOptions {
  /** Limits `confirm` and `retry` to these; both if omitted. */
  readonly environments?: readonly Environment[]
  /** The hash of a plan for these environments, or for one of them: its removals are made despite the bound. */
  readonly confirm?: string
  /** Makes waiting, parked and retrying memberships due now; an empty filter means all of them. */
  readonly retry?: Omit<RetryFilter, 'environments'>
  /** First compares with the real members on the platforms. */
  readonly sweep?: boolean
}

/** The result of a run: how many memberships of each kind. */
export interface SyncRun extends Readonly<Record<(typeof COUNTED)[number], number>> {
  readonly paused: boolean
  /** Removals that wait for an operator. */
  readonly unconfirmed: number
  /** Calls that need somebody to act first, and then another run. */
  readonly stopped: number
  /** Calls still to make, once a platform accepts calls again; none while sync is paused. */
  readonly left: number
}

export interface RunDeps {
  readonly context: SyncContext
  readonly attempts: ReturnType<typeof countAttempts>
  readonly plan: (environments: readonly Environment[]) => Promise<SyncPlan>
  readonly isPaused: () => boolean
  readonly updateDesired: () => Promise<void>
  /** Tries stopped platforms again. */
  readonly reopen: () => void
  readonly sweep: () => Promise<void>
  readonly work: () => Promise<void>
}

export function countAttempts() {
  const counts = new Map<string, number>()
  return {
    add({ environment }: SyncTarget, result: AttemptResult): void {
      const key = `${environment} ${result}`
      counts.set(key, (counts.get(key) ?? 0) + 1)
    },
    of: (environments: readonly Environment[], result: AttemptResult) =>
      environments.reduce((sum, environment) => sum + (counts.get(`${environment} ${result}`) ?? 0), 0),
  }
}

/** The run that an operator asks for. */
export function createRun(deps: RunDeps) {
  const { context, attempts, plan, isPaused, updateDesired, reopen, sweep, work } = deps
  const { db, writeSync, gate } = context

  /** @throws {LatchkeyError} `plan_changed` */
  async function confirmPlan(confirm: string, environments: readonly Environment[]): Promise<void> {
    // The operator may have read the plan of one environment alone.
    const plans = [await plan(environments)]
    for (const environment of environments) plans.push(await plan([environment]))
    const confirmed = plans.find(({ hash }) => hash === confirm)
    if (confirmed === undefined) {
      const message = 'The waiting removals are not the ones you confirmed: check the plan again.'
      throw new LatchkeyError('plan_changed', message)
    }
    const removals = confirmed.calls.filter(({ needsConfirmation }) => needsConfirmation)
    const steps = removals.map((removal) => stepOf(removal, { kind: 'confirm' }))
    for (let i = 0; i < steps.length; i += MAX_PER_TRANSACTION) {
      await writeSync('stepMemberships', steps.slice(i, i + MAX_PER_TRANSACTION))
    }
  }

  /** Whether its platform, or the target itself, takes no calls until somebody acts. */
  function isStopped(target: string): boolean {
    const platform = context.targets.find((one) => one.target === target)?.adapter
    return [platform, target].some((name) => name !== undefined && gate.stateOf(name).state === 'stopped')
  }

  /**
   * Updates the desired memberships, tries stopped platforms again, and does all work that is due; resolves when that
   * is done. Makes no call while sync is paused.
   * @throws {LatchkeyError} `plan_changed`: `confirm` is not the hash of the removals that wait now
   */
  return async (options: RunOptions = {}): Promise<SyncRun> => {
    const { environments = ENVIRONMENTS, confirm, retry, sweep: isSweep } = options
    const before = ofEach(COUNTED, (result) => attempts.of(environments, result))
    // Whoever asks for a run has it follow what they have just changed.
    await untilReadable(db)
    await updateDesired()
    if (confirm !== undefined) await confirmPlan(confirm, environments)
    if (retry !== undefined) await retryAll(writeSync, { ...retry, environments })
    reopen()
    if (isSweep === true) await sweep()
    await work()
    const { calls } = await plan(environments)
    const counts = ofEach(COUNTED, (result) => attempts.of(environments, result) - before[result])
    const unconfirmed = calls.filter(({ needsConfirmation }) => needsConfirmation).length
    const open = isPaused() ? [] : calls.filter(({ needsConfirmation }) => !needsConfirmation)
    const stopped = open.filter(({ target }) => isStopped(target)).length
    return { paused: isPaused(), ...counts, unconfirmed, stopped, left: open.length - stopped }
  }
}
