import { PLATFORM_NAMES } from '../provider/accounts.js'
import type { Environment } from '../provider/event.js'
import { findLongestLimit, loadTargetRefs } from '../store/memberships.js'
import { ENVIRONMENTS } from '../store/schema.js'
import { isSyncPaused } from '../store/sync-state.js'
import { type Checks, createChecks } from './checks.js'
import type { SyncContext, SyncTools, Tools } from './context.js'
import { createUpdateDesired } from './desired.js'
import { type CallState, createGate } from './limits.js'
import { createLoop, oneAtATime } from './loop.js'
import { readStatus } from './plan.js'
import type { CheckFinding, Platform } from './platform.js'
import { createQuestions } from './questions.js'
import { type AttemptResult, createReconciler } from './reconcile.js'
import { countAttempts, createRun, type RunOptions } from './run.js'
import { createSweep } from './sweep.js'
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
  readonly onAttempt?: (target: SyncTarget, result: AttemptResult) => void
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
  onAttempt = () => {},
  ...tools
}: SyncDeps) {
  const { db, clock, random, outages, log } = tools
  const stored = [...(await loadTargetRefs(db))]
  const pausing = await createPausing(tools)
  let isStopping = false
  const context: SyncContext = {
    ...tools,
    gate: createGate(random),
    products,
    platforms: byName(platforms),
    targets: targetsOf(products, stored),
    mayCall: () => isLeader() && !pausing.isPaused() && !isStopping,
  }
  await keepOpenWaits(context)
  const attempts = countAttempts()
  const reconcilers = PLATFORM_NAMES.map((name) =>
    createReconciler(context, name, (target, result) => {
      attempts.add(target, result)
      onAttempt(target, result)
    }),
  )
  const updateDesired = oneAtATime(createUpdateDesired(context, () => loop.workNow()))
  const sweep = oneAtATime(createSweep(context))
  const work = async (): Promise<void> => {
    await Promise.all(reconcilers.map((one) => one.work()))
  }
  const checks = createChecks(context)

  /** Tries again: somebody may have fixed the problem. */
  function reopen(): void {
    context.gate.reopen()
    checks.renew()
  }

  const loop = createLoop({
    look: async () => {
      if (!isLeader()) return
      if (await pausing.hasBeenResumed()) reopen()
      outages.look()
      checks.look()
      await updateDesired()
    },
    work,
    nextAt: async () => {
      if (!context.mayCall()) return []
      return (await Promise.all(reconcilers.map((one) => one.nextAt()))).flat()
    },
    clock,
    log,
  })
  const { promise: stopped, resolve: resolveStopped } = Promise.withResolvers<void>()
  const { status, check, plan, memberships, explain, targets } = createAnswers(context, checks)
  const { isPaused, pause } = pausing
  const run = createRun({ context, attempts, plan, isPaused, updateDesired, reopen, sweep, work })

  loop.wake()

  return {
    wake: loop.wake,
    mayCall: context.mayCall,
    status,
    check,
    plan,
    memberships,
    explain,
    targets,
    run: (options?: RunOptions) => loop.include(run(options)),
    /** Compares with the real members on the platforms, and makes differences due. The schedule calls it. */
    async sweep(): Promise<void> {
      checks.renew()
      // A platform that hangs must not delay the stop.
      await Promise.race([sweep(), stopped])
      loop.workNow()
    },
    /** Checks in the background where calls are allowed, since something may have changed. */
    recheck: checks.renew,
    /** Starts no call until `resume`, even after a restart, except a `check` on request. */
    pause,
    async resume(): Promise<void> {
      await pausing.resume()
      reopen()
      loop.workNow()
    },
    accountAsked: createAccountAsked(context, updateDesired, loop.workNow),
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
    /** Whether it has begun to stop: what is under way for longer than that takes will find the store closed. */
    isStopping: () => isStopping,
    /** Starts no more calls, and waits a few seconds for those in flight and for runs. */
    async stop(): Promise<void> {
      isStopping = true
      await loop.stop(STOP_WITHIN_MS)
      resolveStopped()
    },
  }
}

/** Whether sync is paused: here at once, elsewhere with the next look. */
async function createPausing({ db, writeSync }: Pick<Tools, 'db' | 'writeSync'>) {
  let paused = await isSyncPaused(db)
  /** Of pausing and resuming here: how many have begun, and how many have ended. */
  const changes = { begun: 0, ended: 0 }

  async function store(isPaused: boolean): Promise<void> {
    changes.begun += 1
    await writeSync('setSyncPaused', isPaused).finally(() => {
      changes.ended += 1
    })
  }

  return {
    isPaused: () => paused,
    /** Looks whether another instance has paused or resumed it. @returns whether it has been resumed */
    async hasBeenResumed(): Promise<boolean> {
      const { ended } = changes
      const isPaused = await isSyncPaused(db)
      if (changes.begun !== ended || paused === isPaused) return false
      paused = isPaused
      return !paused
    },
    async pause(): Promise<void> {
      paused = true
      await store(true)
    },
    async resume(): Promise<void> {
      await store(false)
      paused = false
    },
  }
}

/** The previous process received this from a platform, for a call that is no longer known. */
async function keepOpenWaits({ db, gate, clock }: SyncContext): Promise<void> {
  for (const platform of PLATFORM_NAMES) {
    const { error, nextAttemptAt } = (await findLongestLimit(db, platform)) ?? {}
    if (!error || !nextAttemptAt || nextAttemptAt <= clock()) continue
    gate.limited(platform, nextAttemptAt, error, clock())
  }
}

/** The questions about memberships, targets and platforms; about both environments if none is named. */
function createAnswers(context: SyncContext, checks: Checks) {
  const { db, gate, removals, clock } = context
  // The key of a target begins with its platform.
  const isConfigured = (name: string) =>
    [...context.platforms.keys()].some((one) => one === name.split(':')[0])
  const question = (environments: readonly Environment[] = ENVIRONMENTS) => ({
    targets: context.targets.filter(({ environment }) => environments.includes(environment)),
    products: context.products,
    bound: removals(),
    stateOf: (name: string) => (isConfigured(name) ? gate.stateOf(name) : NOT_CONFIGURED),
    now: clock(),
  })
  /** Drops findings about targets of other environments; findings about a platform concern all. */
  const findingsIn = (environments: readonly Environment[], findings: readonly CheckFinding[]) =>
    findings.filter(({ about }) => {
      const own = context.targets.filter(({ target }) => target === about)
      return own.length === 0 || own.some(({ environment }) => environments.includes(environment))
    })

  return {
    ...createQuestions(db, async (environments) => question(environments)),
    status(environments: readonly Environment[] = ENVIRONMENTS) {
      const used = PLATFORM_NAMES.filter(
        (name) => context.platforms.has(name) || context.targets.some(({ adapter }) => adapter === name),
      )
      const report = checks.report()
      const checked = report && { ...report, problems: findingsIn(environments, report.problems) }
      return readStatus(db, question(environments), used, checked)
    },
    /**
     * Asks the platforms whether everything that the configured targets need is there. The same check runs by itself
     * at the start, with every sweep, run and reload, and some minutes after a check with problems.
     */
    check: async (environments: readonly Environment[] = ENVIRONMENTS) =>
      findingsIn(environments, await checks.check()),
  }
}

/**
 * Whether an account that asks to become a member may. Stores an approved membership as given before this resolves, so
 * that it is removed when access ends.
 */
function createAccountAsked(
  { writeSync }: SyncContext,
  updateDesired: () => Promise<void>,
  workNow: () => void,
) {
  return async (target: Target, accountId: string): Promise<'approve' | 'decline'> => {
    const key = { environment: target.environment, target: targetKey(target), accountId }
    const letIn = async () => (await writeSync('stepMemberships', [{ key, event: { kind: 'letIn' } }]))[0]
    let isLetIn = await letIn()
    if (!isLetIn) {
      // New access may not have reached the desired memberships yet.
      await updateDesired()
      isLetIn = await letIn()
    }
    workNow()
    return isLetIn ? 'approve' : 'decline'
  }
}

function byName(platforms: readonly Platform[]): ReadonlyMap<AdapterName, Platform> {
  return new Map(platforms.map((platform) => [platform.name, platform]))
}
