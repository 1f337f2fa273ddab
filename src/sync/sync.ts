import { LatchkeyError } from '../errors.js'
import { PLATFORM_NAMES } from '../provider/accounts.js'
import type { Environment } from '../provider/event.js'
import { findLongestLimit, loadTargetRefs, type RetryFilter } from '../store/memberships.js'
import { ENVIRONMENTS } from '../store/schema.js'
import { isSyncPaused } from '../store/sync-state.js'
import { createChecks } from './checks.js'
import type { SyncContext, SyncTools } from './context.js'
import { createUpdateDesired } from './desired.js'
import { type CallState, createGate } from './limits.js'
import { createLoop, oneAtATime } from './loop.js'
import { createQuestions, readStatus } from './plan.js'
import type { CheckFinding, Platform } from './platform.js'
import { type AttemptResult, createReconciler } from './reconcile.js'
import { createSweep, retryAll } from './sweep.js'
import {
  type AdapterName,
  type SyncedProduct,
  type SyncTarget,
  type Target,
  targetKey,
  targetsOf,
} from './target.js'

/** How long a stop waits for calls in flight. The store has recorded the ones that hang as begun. */
const STOP_WITHIN_MS = 3_000

/** Bounds how long one transaction blocks deliveries. */
const MAX_PER_TRANSACTION = 500

/** The attempts that a run reports. */
const COUNTED = ['given', 'taken', 'unchanged', 'failed', 'waiting', 'parked'] as const

const NOT_CONFIGURED: CallState = {
  state: 'stopped',
  until: null,
  reason: {
    code: 'not_configured',
    message: 'No bot is configured for this platform: add it under sync in the config.',
  },
}

export interface SyncDeps extends SyncTools {
  readonly products: readonly SyncedProduct[]
  readonly platforms: readonly Platform[]
  /** Whether this instance calls the platforms. */
  readonly isLeader?: () => boolean
  /** Called after every attempt. */
  readonly onAttempt?: (target: SyncTarget, result: AttemptResult) => void
}

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

export type Sync = Awaited<ReturnType<typeof createSync>>

/**
 * Keeps roles and groups in step with access: updates the desired memberships, and calls the platforms until they
 * agree. Starts at once. No method waits for a platform, unless it says so.
 */
export async function createSync({
  products,
  platforms,
  isLeader = () => true,
  onAttempt,
  ...tools
}: SyncDeps) {
  const { db, writeSync, removals, clock, random, outages, log } = tools
  const stored = [...(await loadTargetRefs(db))]
  let paused = await isSyncPaused(db)
  /** Of pausing and resuming here: how many have begun, and how many have ended. */
  const pauses = { begun: 0, ended: 0 }
  let isStopping = false
  const gate = createGate(random)
  const context: SyncContext = {
    ...tools,
    gate,
    products,
    platforms: byName(platforms),
    targets: targetsOf(products, stored),
    mayCall: () => isLeader() && !paused && !isStopping,
  }
  await keepOpenWaits()
  /** Counts attempts by environment and result. */
  const attempts = new Map<string, number>()
  const reconcilers = PLATFORM_NAMES.map((name) =>
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
  /** Another instance may have paused or resumed it. */
  async function lookForPause(): Promise<void> {
    const { ended } = pauses
    const isPaused = await isSyncPaused(db)
    if (pauses.begun !== ended || paused === isPaused) return
    paused = isPaused
    if (!paused) reopen()
  }

  async function storePaused(isPaused: boolean): Promise<void> {
    pauses.begun += 1
    await writeSync('setSyncPaused', isPaused).finally(() => {
      pauses.ended += 1
    })
  }

  const loop = createLoop({
    look: async () => {
      if (!isLeader()) return
      await lookForPause()
      outages.look()
      checks.look()
      await updateDesired()
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

  /** Tries again: somebody may have fixed the problem. */
  function reopen(): void {
    gate.reopen()
    checks.renew()
  }

  /** The previous process received this from a platform, for a call that is no longer known. */
  async function keepOpenWaits(): Promise<void> {
    for (const platform of PLATFORM_NAMES) {
      const { error, nextAttemptAt } = (await findLongestLimit(db, platform)) ?? {}
      if (!error || !nextAttemptAt || nextAttemptAt <= clock()) continue
      gate.limited(platform, nextAttemptAt, error, clock())
    }
  }

  const { promise: stopped, resolve: resolveStopped } = Promise.withResolvers<void>()
  const question = (environments: readonly Environment[] = ENVIRONMENTS) => ({
    targets: context.targets.filter(({ environment }) => environments.includes(environment)),
    bound: removals(),
    now: clock(),
  })
  const questions = createQuestions(db, async (environments) => question(environments))
  const { plan } = questions
  /** Drops findings about targets of other environments; findings about a platform concern all. */
  const findingsIn = (environments: readonly Environment[], findings: readonly CheckFinding[]) =>
    findings.filter(({ about }) => {
      const own = context.targets.filter(({ target }) => target === about)
      return own.length === 0 || own.some(({ environment }) => environments.includes(environment))
    })

  /**
   * Updates the desired memberships, tries stopped platforms again, and does all work that is due; resolves when that
   * is done. Makes no call while sync is paused.
   * @throws {LatchkeyError} `plan_changed`: `confirm` is not the hash of the removals that wait now
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
    // The operator may have read the plan of one environment alone.
    const plans = [await plan(environments)]
    for (const environment of environments) plans.push(await plan([environment]))
    const confirmed = plans.find(({ hash }) => hash === confirm)
    if (confirmed === undefined) {
      throw new LatchkeyError(
        'plan_changed',
        'The removals that wait are not the ones you confirmed: read the plan again.',
      )
    }
    const steps = confirmed.calls
      .filter(({ needsConfirmation }) => needsConfirmation)
      .map(({ environment, target, accountId }) => ({
        key: { environment, target, accountId },
        event: { kind: 'confirm' as const },
      }))
    for (let i = 0; i < steps.length; i += MAX_PER_TRANSACTION) {
      await writeSync('stepMemberships', steps.slice(i, i + MAX_PER_TRANSACTION))
    }
  }

  loop.wake()

  return {
    wake: loop.wake,
    mayCall: context.mayCall,
    /** @param environments whose targets are shown; both if omitted */
    status(environments: readonly Environment[] = ENVIRONMENTS) {
      const used = PLATFORM_NAMES.filter(
        (name) => context.platforms.has(name) || context.targets.some(({ adapter }) => adapter === name),
      )
      const stateOf = (name: string) => (isConfigured(name, context) ? gate.stateOf(name) : NOT_CONFIGURED)
      const report = checks.report()
      const checked = report && { ...report, problems: findingsIn(environments, report.problems) }
      return readStatus(db, question(environments), used, stateOf, checked)
    },
    ...questions,
    run,
    /** Compares with the real members on the platforms, and makes differences due. The schedule calls it. */
    async sweep(): Promise<void> {
      checks.renew()
      // A platform that hangs must not delay the stop.
      await Promise.race([sweep(), stopped])
      loop.workNow()
    },
    /**
     * Asks the platforms whether everything that the configured targets need is there. The same check runs by itself
     * at the start, with every sweep, run and reload, and some minutes after a check with problems.
     */
    check: async (environments: readonly Environment[] = ENVIRONMENTS) =>
      findingsIn(environments, await checks.check()),
    /** Checks in the background where calls are allowed, since something may have changed. */
    recheck: checks.renew,
    /** Starts no call until `resume`, even after a restart, except a `check` on request. */
    async pause(): Promise<void> {
      paused = true
      await storePaused(true)
    },
    async resume(): Promise<void> {
      await storePaused(false)
      paused = false
      reopen()
      loop.workNow()
    },
    /**
     * Whether an account that asks to become a member may. Stores an approved membership as given before this
     * resolves, so that it is removed when access ends.
     */
    async accountAsked(target: Target, accountId: string): Promise<'approve' | 'decline'> {
      const key = { environment: target.environment, target: targetKey(target), accountId }
      const letIn = async () => (await writeSync('stepMemberships', [{ key, event: { kind: 'letIn' } }]))[0]
      let isLetIn = await letIn()
      if (!isLetIn) {
        // New access may not have reached the desired memberships yet.
        await updateDesired()
        isLetIn = await letIn()
      }
      loop.workNow()
      return isLetIn ? 'approve' : 'decline'
    },
    /** Takes over another configuration; its effects are computed in the background. */
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
    /** Starts no more calls, and waits a few seconds for those in flight. */
    async stop(): Promise<void> {
      isStopping = true
      await loop.stop(STOP_WITHIN_MS)
      resolveStopped()
    },
  }
}

function byName(platforms: readonly Platform[]): ReadonlyMap<AdapterName, Platform> {
  return new Map(platforms.map((platform) => [platform.name, platform]))
}

/** @param name of a platform; or a target's key, which begins with it */
function isConfigured(name: string, { platforms }: SyncContext): boolean {
  return [...platforms.keys()].some((adapter) => name === adapter || name.startsWith(`${adapter}:`))
}
