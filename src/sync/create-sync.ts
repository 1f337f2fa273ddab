import type { Kysely } from 'kysely'
import type { Logger } from 'pino'
import { LatchkeyError } from '../errors.js'
import type { Environment } from '../provider/event.js'
import { ENVIRONMENTS } from '../store/keys.js'
import type { Membership } from '../store/membership.js'
import {
  findLongestWait,
  loadTargetRefs,
  type MembershipStep,
  type RemovalBound,
} from '../store/memberships.js'
import type { Database } from '../store/schema.js'
import { isSyncPaused } from '../store/sync-state.js'
import type { WriteSync } from '../store/sync-writes.js'
import { createChecks } from './checks.js'
import { createUpdateDesired, loadActiveProducts, productsOfTargets } from './desired.js'
import { createGate } from './limits.js'
import { createLoop, inBatches, oneAtATime } from './loop.js'
import type { Outages } from './outages.js'
import { readMemberships, readPlan, readStatus } from './plan.js'
import type { Platform } from './platform.js'
import { type AttemptResult, createReconciler } from './reconcile.js'
import { createSweep, retryAll } from './sweep.js'
import type { CallState, RunOptions, Sync } from './sync.js'
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

/** Bounds how long one transaction keeps arriving deliveries waiting. */
const MAX_PER_TRANSACTION = 500

/** What a run reports of its attempts. */
const COUNTED = ['given', 'taken', 'unchanged', 'failed', 'waiting', 'parked'] as const

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
  let paused = await isSyncPaused(db)
  let isStopping = false

  const gate = createGate(random)
  await keepOpenWaits()
  const mayCall = (): boolean => !paused && !isStopping
  const platformOf = ({ adapter }: { readonly adapter: AdapterName }) => platforms.get(adapter) ?? null
  /** By environment and result, what came of every attempt. */
  const attempts = new Map<string, number>()
  const writeStep = inBatches((steps: readonly MembershipStep[]) => writeSync('stepMemberships', steps))
  const reconcilers = ADAPTER_NAMES.map((name) =>
    createReconciler({
      db,
      name,
      platform: () => platformOf({ adapter: name }),
      targets: () => targets.filter(({ adapter }) => adapter === name),
      bound: removals,
      mayCall,
      onAttempt: (target, result) => {
        const key = `${target.environment} ${result}`
        attempts.set(key, (attempts.get(key) ?? 0) + 1)
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

  /** What a platform said to the process before this one; to which of its calls is not known any more. */
  async function keepOpenWaits(): Promise<void> {
    for (const platform of ADAPTER_NAMES) {
      const waiting = await findLongestWait(db, platform, ['rate_limited'])
      if (waiting === null || waiting.error === null) continue
      const { target, error, nextAttemptAt } = waiting
      const until = nextAttemptAt ?? 0
      if (until > clock()) gate.limited({ platform, target }, 'platform', until, error, clock())
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

  async function run({ environments = ENVIRONMENTS, confirm, retry, sweep: isSweep }: RunOptions = {}) {
    const count = (result: AttemptResult) =>
      environments.reduce((sum, environment) => sum + (attempts.get(`${environment} ${result}`) ?? 0), 0)
    const before = COUNTED.map(count)
    await updateDesired()
    if (confirm !== undefined) await confirmPlan(confirm, environments)
    if (retry !== undefined) await retryAll(writeSync, { environments, ...retry })
    reopen()
    if (isSweep === true) await sweep()
    await work()
    const { calls } = await plan(environments)
    const done = COUNTED.map((result, i) => [result, count(result) - (before[i] ?? 0)] as const)
    const unconfirmed = calls.filter(({ needsConfirmation }) => needsConfirmation).length
    const open = paused ? [] : calls.filter(({ needsConfirmation }) => !needsConfirmation)
    const stopped = open.filter(({ target }) => {
      const platform = targets.find((one) => one.target === target)?.adapter
      return [platform, target].some((name) => name !== undefined && gate.stateOf(name).kind === 'stopped')
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
    run,
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
