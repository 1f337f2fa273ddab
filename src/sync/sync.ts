import { LatchkeyError } from '../errors.js'
import type { Environment } from '../provider/event.js'
import { findLongestLimit, loadTargetRefs, type RetryFilter } from '../store/memberships.js'
import { ENVIRONMENTS } from '../store/schema.js'
import { isSyncPaused } from '../store/sync-state.js'
import { createChecks } from './checks.js'
import type { SyncContext, SyncTools } from './context.js'
import { createUpdateDesired } from './desired.js'
import { type CallState, createGate } from './limits.js'
import { createLoop, oneAtATime } from './loop.js'
import { type MembershipQuery, readMemberships, readPlan, readStatus } from './plan.js'
import type { Platform } from './platform.js'
import { type AttemptResult, createReconciler } from './reconcile.js'
import { createSweep, retryAll } from './sweep.js'
import {
  ADAPTER_NAMES,
  type AdapterName,
  type SyncedProduct,
  type SyncTarget,
  type Target,
  targetKey,
  targetsOf,
} from './target.js'

/** Calls that are under way at the end are waited for; those that hang are not: they are written down as begun. */
const STOP_WITHIN_MS = 3_000

/** Bounds how long one transaction keeps arriving deliveries waiting. */
const MAX_PER_TRANSACTION = 500

/** What a run reports of its attempts. */
const COUNTED = ['given', 'taken', 'unchanged', 'failed', 'waiting', 'parked'] as const

const NOT_CONFIGURED: CallState = {
  state: 'stopped',
  until: null,
  reason: {
    code: 'not_configured',
    message: 'There is no bot for this platform: add it under sync in the config.',
  },
}

export interface SyncDeps extends SyncTools {
  readonly products: readonly SyncedProduct[]
  readonly platforms: readonly Platform[]
  /** Called after every attempt. */
  readonly onAttempt?: (target: SyncTarget, result: AttemptResult) => void
}

export interface RunOptions {
  /** Whose removals may be confirmed, and whose failures are tried again; left out: of both. */
  readonly environments?: readonly Environment[]
  /** The hash of a plan of these, or of one of them: its removals are made, bound or not. */
  readonly confirm?: string
  /** Makes what waits, is parked or retrying due now; an empty filter means all of it. */
  readonly retry?: Omit<RetryFilter, 'environments'>
  /** Compares with the platforms' real members first. */
  readonly sweep?: boolean
}

/** What came of a run: how many memberships of each kind. */
export interface SyncRun extends Readonly<Record<(typeof COUNTED)[number], number>> {
  readonly paused: boolean
  /** Removals that wait for an operator. */
  readonly unconfirmed: number
  /** Calls that are not made until somebody has acted, and then runs it again. */
  readonly stopped: number
  /** Calls that are still to be made, once a platform lets us or answers again; none while sync is paused. */
  readonly left: number
}

export type Sync = Awaited<ReturnType<typeof createSync>>

/**
 * Keeps roles and groups in step with access: takes in what has changed, and drives the platforms until they agree.
 * Starts to work at once. Nothing that is asked here waits for a platform, unless it says so.
 */
export async function createSync({ products, platforms, onAttempt, ...tools }: SyncDeps) {
  const { db, writeSync, removals, clock, random, outages, log } = tools
  const stored = [...(await loadTargetRefs(db))]
  let paused = await isSyncPaused(db)
  let isStopping = false
  const gate = createGate(random)
  const context: SyncContext = {
    ...tools,
    gate,
    products,
    platforms: byName(platforms),
    targets: targetsOf(products, stored),
    mayCall: () => !paused && !isStopping,
  }
  await keepOpenWaits()
  /** By environment and result, what came of every attempt. */
  const attempts = new Map<string, number>()
  const reconcilers = ADAPTER_NAMES.map((name) =>
    createReconciler(context, name, (target, result) => {
      const key = `${target.environment} ${result}`
      attempts.set(key, (attempts.get(key) ?? 0) + 1)
      onAttempt?.(target, result)
    }),
  )
  const updateDesired = oneAtATime(createUpdateDesired(context, () => loop.workNow()))
  const sweep = oneAtATime(createSweep(context))
  const work = async (): Promise<void> => {
    await Promise.all(reconcilers.map((one) => one.work()))
  }
  const checks = createChecks(context)
  const loop = createLoop({
    look: () => {
      outages.look()
      checks.look()
      return updateDesired()
    },
    work,
    nextAt: async () => {
      if (!context.mayCall()) return null
      const times = (await Promise.all(reconcilers.map((one) => one.nextAt()))).filter((at) => at !== null)
      return times.length === 0 ? null : Math.min(...times)
    },
    clock,
    log,
  })

  /** Somebody may have done what was missing. */
  function reopen(): void {
    gate.reopen()
    checks.renew()
  }

  /** What a platform said to the process before this one; to which of its calls is not known any more. */
  async function keepOpenWaits(): Promise<void> {
    for (const platform of ADAPTER_NAMES) {
      const { error, nextAttemptAt } = (await findLongestLimit(db, platform)) ?? {}
      if (!error || !nextAttemptAt || nextAttemptAt <= clock()) continue
      gate.limited(platform, nextAttemptAt, error, clock())
    }
  }

  const { promise: stopped, resolve: tellStopped } = Promise.withResolvers<void>()
  const question = (environments: readonly Environment[] = ENVIRONMENTS) => ({
    targets: context.targets.filter(({ environment }) => environments.includes(environment)),
    bound: removals(),
    now: clock(),
  })
  /** The calls that would be made now in these environments; left out: in both. */
  const plan = (environments?: readonly Environment[]) => readPlan(db, question(environments))

  /**
   * Takes in what has changed, tries stopped platforms again, and works off all that is due now; resolves when that
   * is done. While sync is paused it makes no call.
   * @throws {LatchkeyError} `plan_changed`: `confirm` is not the hash of what waits now
   */
  async function run(options: RunOptions = {}): Promise<SyncRun> {
    const { environments = ENVIRONMENTS, confirm, retry, sweep: isSweep } = options
    const count = (result: AttemptResult) =>
      environments.reduce((sum, environment) => sum + (attempts.get(`${environment} ${result}`) ?? 0), 0)
    const before = COUNTED.map(count)
    await updateDesired()
    if (confirm !== undefined) await confirmPlan(confirm, environments)
    if (retry !== undefined) await retryAll(writeSync, { ...retry, environments })
    reopen()
    if (isSweep === true) await sweep()
    await work()
    const { calls } = await plan(environments)
    const done = COUNTED.map((result, i) => [result, count(result) - (before[i] ?? 0)] as const)
    const unconfirmed = calls.filter(({ needsConfirmation }) => needsConfirmation).length
    const open = paused ? [] : calls.filter(({ needsConfirmation }) => !needsConfirmation)
    const stopped = open.filter(({ target }) => {
      const platform = context.targets.find((one) => one.target === target)?.adapter
      return [platform, target].some((name) => name !== undefined && gate.stateOf(name).state === 'stopped')
    }).length
    const counts = Object.fromEntries(done) as Record<(typeof COUNTED)[number], number>
    return { paused, ...counts, unconfirmed, stopped, left: open.length - stopped }
  }

  /** @throws {LatchkeyError} `plan_changed` */
  async function confirmPlan(confirm: string, environments: readonly Environment[]): Promise<void> {
    // The operator may have looked at the plan of one environment alone.
    const plans = [await plan(environments)]
    for (const environment of environments) plans.push(await plan([environment]))
    const confirmed = plans.find(({ hash }) => hash === confirm)
    if (confirmed === undefined) {
      throw new LatchkeyError(
        'plan_changed',
        'What waits for confirmation is not what was confirmed: look at the plan again.',
      )
    }
    const steps = confirmed.calls
      .filter(({ needsConfirmation }) => needsConfirmation)
      .map(({ environment, target, accountId }) => ({
        key: { environment, target, accountId },
        happening: { kind: 'confirm' as const },
      }))
    for (let i = 0; i < steps.length; i += MAX_PER_TRANSACTION) {
      await writeSync('stepMemberships', steps.slice(i, i + MAX_PER_TRANSACTION))
    }
  }

  loop.wake()

  return {
    wake: loop.wake,
    /** @param environments whose targets it tells; left out: of both */
    status: (environments?: readonly Environment[]) =>
      readStatus(
        db,
        question(environments),
        ADAPTER_NAMES.filter(
          (name) => context.platforms.has(name) || context.targets.some(({ adapter }) => adapter === name),
        ),
        (name) => (isConfigured(name, context) ? gate.stateOf(name) : NOT_CONFIGURED),
        checks.report(),
      ),
    memberships: (query: MembershipQuery) => readMemberships(db, question(), query),
    plan,
    run,
    /** Compares with the platforms' real members, and makes what differs due. The schedule calls it. */
    async sweep(): Promise<void> {
      checks.renew()
      // A platform that hangs keeps nobody waiting at the end.
      await Promise.race([sweep(), stopped])
      loop.workNow()
    },
    /**
     * Asks the platforms whether all that the configured targets need is there. That is done by itself, too, at the
     * start and with every sweep, run and reload, and some minutes after a check that was not fine.
     */
    check: checks.check,
    /** Checks in the background, where calls may be made, since something may have changed. */
    recheck: checks.renew,
    /** The names of the roles and groups that are configured, or were: what was given in them is still to be removed. */
    targets: (environments?: readonly Environment[]) =>
      question(environments).targets.map(({ target }) => target),
    /** No call is begun from then on, after a restart either, until `resume`, but for a `check` that is asked for. */
    async pause(): Promise<void> {
      paused = true
      await writeSync('setSyncPaused', true)
    },
    async resume(): Promise<void> {
      await writeSync('setSyncPaused', false)
      paused = false
      reopen()
      loop.workNow()
    },
    /**
     * Whether an account that asks to become a member may. `approve` is written down as given before this resolves, so
     * that it is taken back when access ends.
     */
    async accountAsked(target: Target, accountId: string): Promise<'approve' | 'decline'> {
      const key = { environment: target.environment, target: targetKey(target), accountId }
      const letIn = async () =>
        (await writeSync('stepMemberships', [{ key, happening: { kind: 'letIn' } }]))[0]
      let isLetIn = await letIn()
      if (!isLetIn) {
        // Their access may be so new that it is not taken in yet.
        await updateDesired()
        isLetIn = await letIn()
      }
      loop.workNow()
      return isLetIn ? 'approve' : 'decline'
    },
    /** Takes over another configuration; what follows from it is worked out in the background. */
    reload(products: readonly SyncedProduct[], platforms: readonly Platform[]): void {
      const before = context.platforms
      context.products = products
      context.platforms = byName(platforms)
      for (const [name, one] of before) if (context.platforms.get(name) !== one) outages.forget(name)
      stored.push(...context.targets)
      context.targets = targetsOf(products, stored)
      reopen()
      loop.wake()
    },
    /** Begins no call any more, and waits a few seconds for those under way. */
    async stop(): Promise<void> {
      isStopping = true
      await loop.stop(STOP_WITHIN_MS)
      tellStopped()
    },
  }
}

function byName(platforms: readonly Platform[]): ReadonlyMap<AdapterName, Platform> {
  return new Map(platforms.map((platform) => [platform.name, platform]))
}

/** @param name a platform's, or a target's key, which begins with it */
function isConfigured(name: string, { platforms }: SyncContext): boolean {
  return [...platforms.keys()].some((adapter) => name === adapter || name.startsWith(`${adapter}:`))
}
