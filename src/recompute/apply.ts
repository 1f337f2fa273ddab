/* Computes state again from the stored events, and writes what differs: a rebuild, a replay, another policy. */

import { setImmediate as turn } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { RULES_VERSION } from '../entitlements/derive.js'
import { isChange } from '../entitlements/entitlement.js'
import type { SourceKey } from '../entitlements/model.js'
import {
  createLocks,
  LOCKS_AT_MOST,
  type Lock,
  type LockKind,
  lockName,
  NotLockedError,
} from '../ingest/locks.js'
import { writeAccess } from '../ingest/settle.js'
import { NORMALIZER_VERSION } from '../provider/event.js'
import { loadChanges, newestCursor, PLACES } from '../store/changes.js'
import { replacePerson } from '../store/customers.js'
import { alone, beside, engineOf, inSnapshot } from '../store/engine.js'
import { newestSeq } from '../store/event-walk.js'
import {
  type Concern,
  clearJob,
  loadJob,
  loadJobParts,
  NOTHING_READ,
  notMoved,
  type StoredJob,
  saveForms,
  saveJob,
  saveJobPart,
  savePlaces,
} from '../store/recompute.js'
import { type Db, ENVIRONMENTS, type Tx } from '../store/schema.js'
import { policyInForce, savePolicy, saveRulesVersion } from '../store/settings.js'
import { deleteLinks, deleteSources, saveLinks, saveSources } from '../store/sources.js'
import { hasRunOut } from './differences.js'
import { isWhole } from './group.js'
import { createPass, type FoundGroup, PACE, type Pass, runPass, type Settled, type Work } from './pass.js'
import {
  type AccessDifference,
  type ApplyPlan,
  interrupted,
  type RecomputeReport,
  summarise,
  type WorkOptions,
} from './run.js'

/**
 * Corrects group by group. Each turn is one transaction that leaves the store consistent, so deliveries continue in
 * between, and an interrupted job of the same kind is continued.
 * @throws {LatchkeyError} `rebuild_interrupted`, `replay_interrupted`; `rebuild_running`; `store_unavailable` if an
 * event can't be read
 */
export async function applyPlan(
  { db, clock, pace = PACE }: { readonly db: Db; readonly clock: () => number; readonly pace?: typeof PACE },
  plan: ApplyPlan,
  { onProgress = () => {}, isStopping = () => turn(false) }: WorkOptions = {},
): Promise<RecomputeReport> {
  const begun = await alone(db, (trx) => begin(trx, plan))
  const pass = createPass(begun.job, { ...begun.job, ...begun }, { writes: true })
  const saving = createSaving(begun, pass)
  async function goOn(): Promise<void> {
    onProgress(pass.reached(), begun.job.newest)
    if (!(await isStopping())) return
    await beside(db, saving.save)
    throw interrupted(plan)
  }
  const saveIfDue = async (trx: Tx): Promise<void> => {
    if (saving.isDue(pace.eventsPerSave)) await saving.save(trx)
  }
  const work: Work<Tx> = {
    async look(look) {
      const answer = await inSnapshot(db, look)
      await goOn()
      return answer
    },
    async turn(find, settle) {
      await inLockedTurn(db, clock, find, async (trx, found) => {
        await settle(trx, found)
        await saveIfDue(trx)
      })
      await goOn()
    },
    async turnAlone(turn) {
      const answer = await alone(db, async (trx) => {
        const done = await turn(trx, clock())
        await saveIfDue(trx)
        return done
      })
      await goOn()
      return answer
    },
    async settle(trx, settled) {
      saving.note(settled, await write(trx, settled))
    },
    settlePerson: (trx, { record, references, ...key }) => replacePerson(trx, key, record, references),
  }
  await runPass(pass, work, pace)
  const newest = await alone(db, async (trx) => {
    await clearJob(trx)
    if (isWhole(plan.scope) && plan.scope.length === ENVIRONMENTS.length)
      await saveRulesVersion(trx, RULES_VERSION)
    return newestCursor(trx)
  })
  onProgress(begun.job.newest, begun.job.newest)
  return {
    counts: pass.counts(),
    access: summarise(await changesBetween(begun.job.changesAfter, newest, db), plan.sampleSize),
    customers: [],
    differences: { count: 0, named: [] },
  }
}

/**
 * Begins a job, or continues an interrupted one of the same kind.
 * @returns it, how many parts of it are saved, and what those of an interrupted job say
 * @throws {LatchkeyError} `rebuild_running`: a policy is in force, but not all sources were moved to it yet
 */
async function begin(trx: Tx, { scope, endpoints, policy: given }: ApplyPlan) {
  const before = await loadJob(trx)
  const inForce = await policyInForce(trx)
  const policy = given ?? inForce
  const fresh: StoredJob = {
    scope,
    endpoints,
    policy,
    normalizerVersion: NORMALIZER_VERSION,
    isMoving: before?.isMoving || !isDeepStrictEqual(inForce, policy),
    newest: await newestSeq(trx),
    reached: 0,
    counts: NOTHING_READ,
    changesAfter: await newestCursor(trx),
  }
  const isSame = (['scope', 'endpoints', 'policy', 'normalizerVersion'] as const).every((name) =>
    isDeepStrictEqual(before?.[name], fresh[name]),
  )
  if (before?.isMoving && given === null && !isSame) throw notMoved()
  const parts = await loadJobParts(trx)
  const concerned = parts.flatMap((part) => part.concerned)
  if (before !== null && isSame) {
    const job = { ...before, newest: fresh.newest }
    return { job, parts: parts.length, ahead: parts.flatMap(({ ahead }) => ahead), concerned }
  }
  await clearJob(trx)
  if (!isDeepStrictEqual(inForce, policy)) await savePolicy(trx, policy)
  await saveJob(trx, fresh)
  if (concerned.length > 0) await saveJobPart(trx, 1, { ahead: [], concerned })
  return { job: fresh, parts: concerned.length > 0 ? 1 : 0, ahead: [], concerned }
}

/** Saves how far a job is, in the transaction that gets there. */
function createSaving({ job, parts: saved }: Awaited<ReturnType<typeof begin>>, pass: Pass) {
  let parts = saved
  let savedAt = job.reached
  let hasWritten = false
  let ahead: number[] = []
  let concerned: Concern[] = []

  return {
    note({ done, concerned: found }: Settled, isWritten: boolean): void {
      // Only the counts of a replay must not include an event twice.
      if (job.endpoints !== null) ahead.push(...done)
      concerned.push(...found)
      hasWritten ||= isWritten
    },
    isDue: (events: number): boolean => hasWritten || pass.reached() - savedAt >= events,
    async save(trx: Tx): Promise<void> {
      const reached = pass.reached()
      const part = { ahead: ahead.filter((seq) => seq > reached), concerned }
      if (part.ahead.length + concerned.length > 0) {
        parts += 1
        await saveJobPart(trx, parts, part)
      }
      await saveJob(trx, { ...job, reached, counts: pass.counts() })
      ;[ahead, concerned, savedAt, hasWritten] = [[], [], reached, false]
    },
  }
}

/**
 * Writes what differs, and appends changes of access to the change log.
 * @returns whether anything did
 */
async function write(
  trx: Tx,
  { group: { environment }, differences: { events, links, unlinked, sources, access }, now }: Settled,
): Promise<boolean> {
  const forms = events.filter(({ hasOtherForm }) => hasOtherForm)
  const places = events.filter(({ isElsewhere, hasOtherOutcome }) => isElsewhere || hasOtherOutcome)
  const folded = sources.flatMap(({ saved, folded }) => (folded === null ? [] : [{ ...folded, saved }]))
  const gone = sources.filter((one) => one.folded === null).map(({ key }) => key)
  const entitlements = [...access.values()].flatMap((one) => one.differences)
  await saveForms(trx, environment, forms)
  await savePlaces(trx, places)
  await saveLinks(trx, environment, links)
  await deleteLinks(trx, environment, unlinked)
  await saveSources(trx, environment, folded)
  await deleteSources(trx, environment, gone)
  await writeAccess(trx, environment, entitlements, now, (difference) => ({
    kind: hasRunOut(difference, now) ? 'clock' : 'rebuild',
    eventId: null,
  }))
  return [events, links, unlinked, sources, entitlements].some(({ length }) => length > 0)
}

type Find<Found> = (db: Db, now: number) => Promise<Found>

/**
 * Looks first, without any lock: mostly nothing differs. What does is locked, and found again: what others have changed
 * meanwhile is no difference. Where one process writes, it looks once, alone.
 */
async function inLockedTurn<Found extends { readonly groups: readonly FoundGroup[] }>(
  db: Db,
  clock: () => number,
  find: Find<Found>,
  settle: (trx: Tx, found: Found) => Promise<void>,
): Promise<void> {
  const settleAlone = () => alone(db, async (trx) => settle(trx, await find(trx, clock())))
  if (!engineOf(db).isRemote) return settleAlone()
  const seen = await inSnapshot(db, (reader) => find(reader, clock()))
  if (!seen.groups.some(hasDifferences)) return beside(db, (trx) => settle(trx, seen))
  let held = locksOf(seen.groups)
  while (held.size <= LOCKS_AT_MOST) {
    try {
      const isSettled = await beside(db, async (trx) => {
        await engineOf(trx).lock(trx, [...held.keys()])
        const found = await find(trx, clock())
        const locks = createLocks(held)
        for (const lock of locksOf(found.groups).values()) locks.need(lock)
        locks.assertHeld()
        if (changesIn(found.groups) > PLACES) return false
        await settle(trx, found)
        return true
      })
      if (isSettled) return undefined
      break
    } catch (error) {
      if (!(error instanceof NotLockedError)) throw error
      held = new Map([...held, ...error.missing.map((lock) => [lockName(lock), lock] as const)])
    }
  }
  return settleAlone()
}

/** At most so many changes are appended. */
function changesIn(groups: readonly FoundGroup[]): number {
  return groups
    .flatMap(({ differences: { access } }) => [...access.values()])
    .reduce((sum, { differences }) => sum + differences.length, 0)
}

function hasDifferences({ differences: { events, links, unlinked, sources, access } }: FoundGroup): boolean {
  return (
    [events, links, unlinked, sources].some(({ length }) => length > 0) ||
    [...access.values()].some((one) => one.differences.length > 0)
  )
}

/** What a delivery locks that could change anything of these groups, by name. */
function locksOf(groups: readonly FoundGroup[]): ReadonlyMap<string, Lock> {
  const locks = new Map<string, Lock>()
  for (const { group } of groups) {
    const { environment, derived } = group
    const add = (kind: LockKind, id: string | null) => {
      const lock = id === null ? null : { environment, kind, id }
      if (lock !== null) locks.set(lockName(lock), lock)
    }
    const addSource = ({ kind, id }: SourceKey) => kind !== 'manual' && add(kind, id)
    for (const { kind, source_id: id } of group.sources.values()) addSource({ kind, id })
    for (const { state } of derived.sources.values()) addSource(state)
    for (const id of [...group.links.keys(), ...derived.links.keys()]) add('payment', id)
    for (const id of group.customerIds) add('customer', id)
    for (const event of group.events.flatMap(({ before, after }) => [before, after])) {
      add('customer', event?.customerId ?? null)
      if (event?.subject !== 'payment' && event?.subject !== 'subscription') continue
      add('payment', event.paymentId)
      add('subscription', event.subscriptionId)
    }
  }
  return locks
}

const CHANGES_AT_ONCE = 1_000

/** The changes of a job since it began, however often it was interrupted: each entitlement before it and now. */
async function changesBetween(from: number, upTo: number, db: Db): Promise<readonly AccessDifference[]> {
  const found = new Map<string, AccessDifference>()
  for (let after: number | undefined = from; after !== undefined; ) {
    const changes = await loadChanges(db, null, after, CHANGES_AT_ONCE, { upTo })
    for (const { environment, customerId, productId, cause, ...change } of changes) {
      if (cause.kind !== 'rebuild') continue
      const name = JSON.stringify([environment, customerId, productId])
      const before = found.get(name)?.before ?? change.before
      found.set(name, { environment, customerId, productId, before, after: change.after })
    }
    after = changes.at(-1)?.cursor
  }
  return [...found.values()].filter(({ before, after }) => isChange(before, after))
}
