import type { Kysely } from 'kysely'
import type { Logger } from 'pino'
import type { Environment } from '../provider/event.js'
import { findRecentChange } from '../store/changes.js'
import { ENVIRONMENTS } from '../store/environments.js'
import type { Membership } from '../store/membership.js'
import { loadOpenWaits, loadTargetRefs } from '../store/memberships.js'
import type { Database } from '../store/schema.js'
import { loadActiveProducts, loadSyncSettings } from '../store/sync-state.js'
import type { WriteSync } from '../store/sync-writes.js'
import { createAbsorb } from './absorb.js'
import { createChecks } from './checks.js'
import { productsOfTargets } from './desired.js'
import type { DriveResult } from './drive.js'
import { createGate } from './gate.js'
import { createLane } from './lane.js'
import { createMembershipReasons, type MembershipReason } from './membership-reasons.js'
import { oneAtATime } from './one-at-a-time.js'
import type { Outages } from './outages.js'
import type { Platform } from './platform.js'
import { createPulse } from './pulse.js'
import { readPlan } from './read-plan.js'
import { readMemberships, readStatus } from './read-status.js'
import type { RemovalBound } from './removal-bound.js'
import { createRun } from './run.js'
import { createStepWriter } from './step-writer.js'
import { createSweep } from './sweep.js'
import type { CallState, Sync, SyncedProduct } from './sync.js'
import { ADAPTER_NAMES, type AdapterName, targetKey } from './target.js'
import { type SyncTarget, targetsOf } from './targets.js'
import { createTellOfBound } from './tell-of-bound.js'

/** Calls that are under way at the end are waited for; those that hang are not: they are written down as begun. */
const STOP_WITHIN_MS = 3_000

/** How long after a change of access it is known at most what follows for roles and groups. */
const TAKEN_IN_WITHIN_MS = 10 * 60_000

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
  /** Told of everything that is driven. */
  readonly onDriven?: (target: SyncTarget, result: DriveResult) => void
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
  const takeStep = createStepWriter(writeSync)
  const tellOfBound = createTellOfBound(log)
  const reasons = createMembershipReasons()
  const lanes = ADAPTER_NAMES.map((name) =>
    createLane({
      db,
      name,
      platform: () => platformOf({ adapter: name }),
      targets: () => targets.filter(({ adapter }) => adapter === name),
      bound: removals,
      mayCall,
      onDriven: (target, result) => {
        run.count(target.environment, result)
        deps.onDriven?.(target, result)
      },
      onBound: tellOfBound,
      gate,
      takeStep,
      clock,
      random,
      onDone: tellDone,
      log,
    }),
  )
  const absorb = oneAtATime(
    createAbsorb({ db, writeSync, products: () => products, reasons, onAbsorbed: () => pulse.beat() }),
  )
  const sweep = oneAtATime(
    createSweep({ db, writeSync, targets: () => targets, platformOf, gate, mayCall, clock, log }),
  )
  const work = async (): Promise<void> => {
    await Promise.all(lanes.map((lane) => lane.work()))
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
  const pulse = createPulse({
    look: () => {
      outages.look()
      checks.look()
      return absorb()
    },
    work,
    nextAt: async () => {
      if (!mayCall()) return null
      const times = await Promise.all(lanes.map((lane) => lane.nextAt()))
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
  async function tellDone(
    membership: Membership,
    action: 'given' | 'taken',
    isRepair: boolean,
  ): Promise<void> {
    const { environment, customerId, target } = membership
    const platform = targets.find((one) => one.target === target)?.adapter
    const reason = await reasonOf(membership, isRepair).catch((error: unknown) => {
      log.error({ err: error }, 'could not read why a membership was given or taken')
      return null
    })
    log.info({ environment, customerId, platform, target, ...reason }, `membership ${action}`)
  }

  async function reasonOf(
    membership: Membership,
    isRepair: boolean,
  ): Promise<MembershipReason | { readonly cause: null }> {
    const { environment, customerId, target, desired, desiredSince } = membership
    const known = reasons.take(membership, desired)
    const opening = [...(productsOfTargets(products, environment).get(target) ?? [])]
    if (isRepair) {
      const active = (await loadActiveProducts(db, environment, [customerId])).get(customerId) ?? []
      const productIds = active.filter((id) => opening.includes(id))
      return { productIds, cause: { kind: 'sweep', eventId: null } }
    }
    if (known !== null) return known
    const change = await findRecentChange(db, {
      environment,
      customerId,
      productIds: opening,
      active: desired,
      from: desiredSince - TAKEN_IN_WITHIN_MS,
      to: desiredSince,
    })
    return change === null ? { cause: null } : { productIds: [change.productId], cause: change.cause }
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
  pulse.wake()

  return {
    wake: pulse.wake,
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
        absorb,
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
      pulse.beat()
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
      pulse.beat()
    },
    async accountAsked(target, accountId) {
      const key = { environment: target.environment, target: targetKey(target), accountId }
      const letIn = async () =>
        (await writeSync('stepMemberships', [{ key, happening: { kind: 'letIn' } }]))[0]
      let isLetIn = await letIn()
      if (!isLetIn) {
        // Their access may be so new that it is not taken in yet.
        await absorb()
        isLetIn = await letIn()
      }
      pulse.beat()
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
      pulse.wake()
    },
    async stop() {
      isStopping = true
      await pulse.stop(STOP_WITHIN_MS)
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
