import type { Kysely } from 'kysely'
import type { Logger } from 'pino'
import { LatchkeyError } from '../errors.js'
import type { Environment } from '../provider/event.js'
import { ENVIRONMENTS } from '../store/keys.js'
import type { Membership } from '../store/membership.js'
import { loadOpenWaits, loadTargetRefs } from '../store/memberships.js'
import type { Database } from '../store/schema.js'
import { loadActiveProducts, loadSyncSettings } from '../store/sync-state.js'
import type { WriteSync } from '../store/sync-writes.js'
import { createChecks } from './checks.js'
import { createUpdateDesired, productsOfTargets } from './desired.js'
import { createGate } from './limits.js'
import { createLoop, oneAtATime } from './loop.js'
import type { Outages } from './outages.js'
import { type RemovalBound, readMemberships, readPlan, readStatus } from './plan.js'
import type { Platform } from './platform.js'
import { type AttemptResult, createReconciler, createStepWriter } from './reconcile.js'
import { createSweep, inEach, retryAll } from './sweep.js'
import type { CallState, PlannedCall, RunOptions, Sync, SyncPlan, SyncRun } from './sync.js'
import {
  ADAPTER_NAMES,
  type AdapterName,
  type SyncedProduct,
  type SyncTarget,
  targetKey,
  targetsOf,
} from './target.js'

/** Calls that are under way at the end are waited for; those that hang are not: they are written down as begun. */
const STOP_WITHIN_MS = 3_000

const NOT_CONFIGURED: CallState = {
  kind: 'stopped',
  code: 'not_configured',
  message: 'There is no bot for this platform: add it under sync in the config.',
}

export interface SyncDeps {
  /** Reads. */
  readonly db: Kysely<Database>
  readonly writeSync: WriteSync
  readonly products: readonly SyncedProduct[]
  readonly platforms: readonly Platform[]
  /** Asked each time, since a reload may change it. */
  readonly removals: () => RemovalBound
  /** Epoch milliseconds. */
  readonly clock: () => number
  /** From 0 up to 1. */
  readonly random: () => number
  readonly outages: Outages
  readonly log: Logger
  /** Called after every attempt. */
  readonly onAttempt?: (target: SyncTarget, result: AttemptResult) => void
}

/** Starts to work at once. */
export async function createSync(deps: SyncDeps): Promise<Sync> {
  const { db, writeSync, removals, clock, random, outages, log } = deps
  let products = deps.products
  let platforms = byName(deps.platforms)
  let stored = await loadTargetRefs(db)
  let targets = targetsOf(products, stored)
  let { paused } = await loadSyncSettings(db)
  let isStopping = false

  const gate = createGate(random)
  await waitAsTold()
  const mayCall = (): boolean => !paused && !isStopping
  const platformOf = ({ adapter }: { readonly adapter: AdapterName }) => platforms.get(adapter) ?? null
  const run = createRun()
  const writeStep = createStepWriter(writeSync)
  const reconcilers = ADAPTER_NAMES.map((name) =>
    createReconciler({
      db,
      name,
      platform: () => platformOf({ adapter: name }),
      targets: () => targets.filter(({ adapter }) => adapter === name),
      bound: removals,
      mayCall,
      onAttempt: (target, result) => {
        run.count(target.environment, result)
        deps.onAttempt?.(target, result)
      },
      gate,
      writeStep,
      clock,
      random,
      onDone: logDone,
      log,
    }),
  )
  const updateDesired = oneAtATime(
    createUpdateDesired({ db, writeSync, products: () => products, onUpdated: () => loop.workNow() }),
  )
  const sweep = oneAtATime(
    createSweep({ db, writeSync, targets: () => targets, platformOf, gate, mayCall, clock, log }),
  )
  const work = async (): Promise<void> => {
    await Promise.all(reconcilers.map((one) => one.work()))
  }
  const checks = createChecks({
    products: () => products,
    platforms: () => platforms,
    gate,
    mayCall,
    isProbeDue: () => [...platforms.keys()].some(outages.isProbeDue),
    clock,
    log,
  })
  const loop = createLoop({
    look: () => {
      outages.look()
      checks.look()
      return updateDesired()
    },
    work,
    nextAt: async () => {
      if (!mayCall()) return null
      const times = await Promise.all(reconcilers.map((one) => one.nextAt()))
      return [...times, outages.nextAt()].reduce(
        (a, b) => (a === null || b === null ? (a ?? b) : Math.min(a, b)),
        null,
      )
    },
    clock,
    log,
  })

  /** Somebody may have done what was missing. */
  function reopen(): void {
    gate.reopen()
    checks.renew()
  }

  /** One line for each role or group that is given or taken, so that the log says when and why. */
  async function logDone(
    { environment, customerId, target, reason }: Membership,
    action: 'given' | 'taken',
    isRepair: boolean,
  ): Promise<void> {
    const platform = targets.find((one) => one.target === target)?.adapter
    const fields = { environment, customerId, platform, target, ...(reason ?? { cause: null }) }
    if (!isRepair) return log.info(fields, `membership ${action}`)
    const opening = productsOfTargets(products, environment).get(target)
    const active = (await loadActiveProducts(db, environment, [customerId])).get(customerId) ?? []
    const productIds = active.filter((id) => opening?.has(id) === true)
    log.info({ ...fields, productIds, cause: { kind: 'sweep', eventId: null } }, `membership ${action}`)
  }

  /** What a platform has said to the process before this one; of which of its calls it was said is not known any more. */
  async function waitAsTold(): Promise<void> {
    for (const { target, until, failure } of await loadOpenWaits(db, 'rate_limited', clock())) {
      const platform = targets.find((one) => one.target === target)?.adapter
      if (platform !== undefined) gate.limited({ platform, target }, 'platform', until, failure, clock())
    }
  }

  let tellStopped = (): void => {}
  const stopped = new Promise<void>((resolve) => {
    tellStopped = resolve
  })
  const question = (environments: readonly Environment[] = ENVIRONMENTS) => ({
    targets: targets.filter(({ environment }) => environments.includes(environment)),
    bound: removals(),
    now: clock(),
  })
  const plan = (environments?: readonly Environment[]) => readPlan(db, { ...question(environments), paused })
  loop.wake()

  return {
    wake: loop.wake,
    status: (environments) =>
      readStatus(db, {
        ...question(environments),
        platforms: ADAPTER_NAMES.filter(
          (name) => platforms.has(name) || targets.some(({ adapter }) => adapter === name),
        ),
        stateOf: (name) => (isConfigured(name, platforms) ? gate.stateOf(name) : NOT_CONFIGURED),
        checked: checks.report(),
      }),
    memberships: (query) => readMemberships(db, query, question()),
    plan,
    run: (options = {}) =>
      run.begin(options, {
        updateDesired,
        plan,
        writeSync,
        reopen,
        sweep,
        work,
        isStopped: ({ target }) => {
          const platform = targets.find((one) => one.target === target)?.adapter
          return [platform, target].some(
            (name) => name !== undefined && gate.stateOf(name).kind === 'stopped',
          )
        },
        isPaused: () => paused,
      }),
    async sweep() {
      checks.renew()
      // A platform that hangs keeps nobody waiting at the end.
      await Promise.race([sweep(), stopped])
      loop.workNow()
    },
    check: checks.check,
    async pause() {
      paused = true
      await writeSync('setSyncPaused', true)
    },
    async resume() {
      await writeSync('setSyncPaused', false)
      paused = false
      reopen()
      loop.workNow()
    },
    async accountAsked(target, accountId) {
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
    reload(nextProducts, nextPlatforms) {
      products = nextProducts
      const before = platforms
      platforms = byName(nextPlatforms)
      for (const [name, one] of before) if (platforms.get(name) !== one) outages.forget(name)
      stored = [...stored, ...targets]
      targets = targetsOf(products, stored)
      reopen()
      loop.wake()
    },
    async stop() {
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
function isConfigured(name: string, platforms: ReadonlyMap<AdapterName, Platform>): boolean {
  return [...platforms.keys()].some((adapter) => name === adapter || name.startsWith(`${adapter}:`))
}

/** Bounds how long one transaction keeps arriving deliveries waiting. */
const MAX_PER_TRANSACTION = 500

export interface RunDeps {
  readonly updateDesired: () => Promise<void>
  readonly plan: (environments: readonly Environment[]) => Promise<SyncPlan>
  readonly writeSync: WriteSync
  readonly reopen: () => void
  readonly sweep: () => Promise<void>
  readonly work: () => Promise<void>
  /** Whether its platform, or its target, waits for somebody to act. */
  readonly isStopped: (call: PlannedCall) => boolean
  readonly isPaused: () => boolean
}

type Counts = Record<AttemptResult, number>

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
const RESULTS = Object.keys(NONE) as readonly AttemptResult[]

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
    count(environment: Environment, result: AttemptResult): void {
      counted[environment][result] += 1
    },
    /** @throws {LatchkeyError} `plan_changed` */
    async begin(options: RunOptions, deps: RunDeps): Promise<SyncRun> {
      const { environments = ENVIRONMENTS, confirm, retry, sweep } = options
      const before = totalOf(environments)
      await deps.updateDesired()
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
