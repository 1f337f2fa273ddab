/* Computes state again from the stored events, and writes what differs: a rebuild, a replay, another policy. */

import { setImmediate as turn } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { RULES_VERSION } from '../entitlements/derive.js'
import { isChange } from '../entitlements/entitlement.js'
import { writeAccess } from '../ingest/settle.js'
import { NORMALIZER_VERSION } from '../provider/event.js'
import { latestCursor, loadChanges } from '../store/changes.js'
import { replacePerson } from '../store/customers.js'
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
import { createPass, PACE, type Pass, runPass, type Settled, type Work } from './pass.js'
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
  const begun = await db.transaction().execute((trx) => begin(trx, plan))
  const pass = createPass(begun.job, { ...begun.job, ...begun }, { writes: true })
  const saving = createSaving(begun, pass)
  const work: Work<Tx> = {
    async inTurn(turn) {
      const answer = await db.transaction().execute(async (trx) => {
        const done = await turn(trx, clock())
        if (saving.isDue(pace.eventsPerSave)) await saving.save(trx)
        return done
      })
      onProgress(pass.reached(), begun.job.newest)
      if (!(await isStopping())) return answer
      await db.transaction().execute(saving.save)
      throw interrupted(plan)
    },
    async settle(trx, settled) {
      saving.note(settled, await write(trx, settled))
    },
    settlePerson: (trx, { record, references, ...key }) => replacePerson(trx, key, record, references),
  }
  await runPass(pass, work, pace)
  await db.transaction().execute(async (trx) => {
    await clearJob(trx)
    if (isWhole(plan.scope) && plan.scope.length === ENVIRONMENTS.length)
      await saveRulesVersion(trx, RULES_VERSION)
  })
  onProgress(begun.job.newest, begun.job.newest)
  return {
    counts: pass.counts(),
    access: summarise(await changesSince(begun.job.changesAfter, db), plan.sampleSize),
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
    changesAfter: await latestCursor(trx),
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

const CHANGES_AT_ONCE = 1_000

/** The changes of a job since it began, however often it was interrupted: each entitlement before it and now. */
async function changesSince(cursor: number, db: Db): Promise<readonly AccessDifference[]> {
  const found = new Map<string, AccessDifference>()
  for (let after: number | undefined = cursor; after !== undefined; ) {
    const changes = await loadChanges(db, null, after, CHANGES_AT_ONCE)
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
