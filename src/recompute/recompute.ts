import { setImmediate as turn } from 'node:timers/promises'
import { seqsInHistory } from '../entitlements/history.js'
import { isNewerLink, linkOf, type PaymentLink } from '../entitlements/source-of.js'
import { LatchkeyError } from '../errors.js'
import type { Environment, NormalizedEvent } from '../provider/event.js'
import { accountsIn, addFacts, type CustomerFacts, referencesIn } from '../provider/facts.js'
import { replacePerson } from '../store/customers.js'
import { matchesFilter, scanEventHeaders } from '../store/event-walk.js'
import {
  type Concern,
  clearJob,
  type GroupRow,
  loadGroupRows,
  loadGroupRowsBeyond,
  loadHistories,
  placeOf,
  type SourceHistory,
} from '../store/recompute.js'
import type { Db, Tx } from '../store/schema.js'
import { readEvents, type Seeds } from './group.js'
import {
  beginRun,
  changesOf,
  isDone,
  isDryReplay,
  isWhole,
  nodeName,
  noteLeading,
  type RecomputePlan,
  type RecomputeReport,
  type Run,
  saveRun,
  summarise,
  type WorkOptions,
} from './run.js'
import { noteAhead, settleGroups } from './settle.js'

/** How much is done between two points where the job can be interrupted. */
const PACE = {
  /** A few milliseconds of work, like a batch of deliveries; but a group is never split. */
  eventsPerTurn: 400,
  /** Events done without a write before the position is saved: saving costs a sync of the disk. */
  eventsPerSave: 20_000,
}

/** Used until the size of the groups is known. */
const FIRST_READ = 50
const ROWS_AT_ONCE = 500
const SAMPLE_SIZE = 10

/**
 * Computes all state again from the stored events, group by group, and reports or writes what differs. Each turn is
 * one transaction that leaves the store consistent, so deliveries continue in between.
 * @throws {LatchkeyError} `rebuild_interrupted`, `replay_interrupted`; `rebuild_running`; `store_unavailable` if an
 * event can't be read
 */
export async function recompute(
  { db, clock, pace = PACE }: { readonly db: Db; readonly clock: () => number; readonly pace?: typeof PACE },
  plan: RecomputePlan,
  { onProgress = () => {}, isStopping = () => turn(false) }: WorkOptions = {},
): Promise<RecomputeReport> {
  const run = await db.transaction().execute((trx) => beginRun(trx, plan, clock))
  const inTurn: InTurn = async (work) => {
    const result = await inTransaction(db, plan.mode === 'apply', async (trx) => {
      const done = await work(trx)
      if (run.hasWritten || run.job.reached - run.savedAt >= pace.eventsPerSave) await saveRun(trx, run)
      return done
    })
    onProgress(run.job.reached, run.job.newest)
    if (await isStopping()) {
      await db.transaction().execute((trx) => saveRun(trx, run))
      const code = plan.endpoints === null ? 'rebuild_interrupted' : 'replay_interrupted'
      throw new LatchkeyError(code, 'Stopped: run it again to continue.')
    }
    return result
  }
  await noteUnlisted(run, inTurn)
  await walk(run, pace.eventsPerTurn, inTurn)
  if (isWhole(run.job.scope)) await sweep(run, run.job.scope, pace.eventsPerTurn, inTurn)
  await settleConcerned(run, inTurn)
  if (plan.mode === 'apply') await db.transaction().execute(clearJob)
  onProgress(run.job.newest, run.job.newest)
  const { differences, access, customers } = run.found
  const changed = plan.mode === 'apply' ? await changesOf(run.job, db) : [...access.values()].flat()
  const { sampleSize = SAMPLE_SIZE } = plan
  return {
    counts: run.job.counts,
    access: summarise(changed, plan.mode === 'verify' ? SAMPLE_SIZE : sampleSize),
    customers: [...customers.values()],
    differences: { count: differences.size, named: [...differences.values()].slice(0, sampleSize) },
  }
}

/** A comparison rolls back everything it writes, such as access that has ended. */
async function inTransaction<T>(db: Db, isKept: boolean, work: (trx: Tx) => Promise<T>): Promise<T> {
  if (isKept) return db.transaction().execute(work)
  const trx = await db.startTransaction().execute()
  try {
    return await work(trx)
  } finally {
    await trx.rollback().execute()
  }
}

/** Goes through the events of the job, in the order of arrival, up to the newest one when it began. */
async function walk(run: Run, eventsPerTurn: number, inTurn: InTurn): Promise<void> {
  // Sized by the previous groups, so that its groups have about as many events as a turn.
  let limit = Math.min(FIRST_READ, eventsPerTurn)
  while (run.job.reached < run.job.newest) {
    await inTurn(async (trx) => {
      const { rows, reached } = await nextEvents(trx, run, limit)
      const events = await settleGroups(trx, run, { rows })
      run.job = { ...run.job, reached }
      if (events > 0) limit = Math.ceil((eventsPerTurn * rows.length) / events)
    })
  }
}

/** The next events that are not done, and the job's position after them. */
async function nextEvents(trx: Tx, run: Run, limit: number) {
  const { scope, newest, reached: from } = run.job
  if (!isWhole(scope)) {
    const headers = await scanEventHeaders(trx, scope, 'oldest first', from)
    const searched = Math.min(headers.at(-1)?.seq ?? newest, newest)
    const found = headers.filter(
      (one) => one.seq <= newest && !isDone(run, one.seq) && matchesFilter(one, scope),
    )
    const seqs = found.slice(0, limit).map(({ seq }) => seq)
    const reached = found.length > limit ? (seqs.at(-1) ?? searched) : searched
    return { rows: await loadGroupRows(trx, seqs), reached }
  }
  const seqs: number[] = []
  let reached = from
  while (seqs.length < limit && reached < newest) {
    reached += 1
    if (!isDone(run, reached)) seqs.push(reached)
  }
  // Reading a range costs half as much as the same rows by number.
  const isStretch = reached - from < 2 * seqs.length
  const rows = isStretch
    ? await loadGroupRowsBeyond(trx, from, reached, reached - from)
    : await loadGroupRows(trx, seqs)
  return { rows: rows.filter((row) => scope.includes(row.environment) && !isDone(run, row.seq)), reached }
}

/**
 * Finds events that belong to a source but are missing from its history: a source is folded from all of its events, or
 * from none. Only damage causes this.
 */
async function noteUnlisted(run: Run, inTurn: InTurn): Promise<void> {
  const { newest } = run.job
  const listed = new Uint8Array(newest + 1)
  await eachSourcePage(inTurn, async (_, page) => {
    for (const { history } of page) for (const seq of seqsInHistory(history) ?? []) listed[seq] = 1
    const newestSource = page.at(-1)?.seq
    if (newestSource !== undefined) run.settled = new Uint8Array(newestSource + 1)
    return page.length
  })
  for (let reached = 0; reached < newest; ) {
    const seqs: number[] = []
    for (; reached < newest && seqs.length < ROWS_AT_ONCE; reached += 1) {
      if (listed[reached + 1] !== 1) seqs.push(reached + 1)
    }
    for (const row of await inTurn((trx) => loadGroupRows(trx, seqs))) {
      const place = placeOf(row)
      if (place !== null) noteLeading(run, nodeName(row.environment, place.kind, place.id), row.seq)
    }
  }
}

/**
 * Settles the sources that no event has led to: after an interruption, all those that were settled before it; without
 * one, only damage causes them.
 */
async function sweep(
  run: Run,
  environments: readonly Environment[],
  eventsPerTurn: number,
  inTurn: InTurn,
): Promise<void> {
  await eachSourcePage(inTurn, async (trx, page) => {
    const sources: SourceHistory[] = []
    let looked = 0
    let events = 0
    for (const one of page) {
      if (events >= eventsPerTurn) break
      looked += 1
      if (!environments.includes(one.environment) || run.settled[one.seq] !== 0) continue
      sources.push(one)
      events += seqsInHistory(one.history)?.length ?? 0
    }
    if (sources.length > 0) await settleGroups(trx, run, { sources })
    return looked
  })
}

/** @param work returns how many of the page it has done, from the first one on */
async function eachSourcePage(
  inTurn: InTurn,
  work: (trx: Tx, page: readonly SourceHistory[]) => Promise<number>,
): Promise<void> {
  let after: number | undefined
  let isLast = false
  while (!isLast) {
    await inTurn(async (trx) => {
      const page = await loadHistories(trx, after, ROWS_AT_ONCE)
      const done = await work(trx, page)
      isLast = done === page.length && done < ROWS_AT_ONCE
      after = page[done - 1]?.seq
    })
  }
}

/** Bounds the memory. */
const SOUGHT_AT_ONCE = 10_000
const SETTLED_AT_ONCE = 200

/** Runs in a transaction of its own, between deliveries. */
type InTurn = <T>(work: (trx: Tx) => Promise<T>) => Promise<T>

/**
 * Computes again the facts and links of the affected customers and payments from all events. No source leads to all of
 * a customer's events, or to all events that link a payment, so all stored events are searched for their ids.
 */
async function settleConcerned(run: Run, inTurn: InTurn): Promise<void> {
  while (run.concerned.size > 0) {
    const some = [...run.concerned].slice(0, SOUGHT_AT_ONCE)
    const naming = new Map(some.map(([name]) => [name, new Set<number>()]))
    // Not all events have their payment in a column; and in a dry run, the columns differ from the new readings.
    const isAnyAsked = isDryReplay(run) || some.some(([, { kind }]) => kind === 'payment')
    let reached = 0
    const seekNext = async (trx: Tx): Promise<boolean> => {
      const rows = await loadGroupRowsBeyond(trx, reached, Number.MAX_SAFE_INTEGER, ROWS_AT_ONCE)
      const asked = rows.filter(
        ({ environment, customer_id: id }) => isAnyAsked || naming.has(nodeName(environment, 'customer', id)),
      )
      for (const { row, after } of await readable(trx, run, asked)) {
        naming.get(nodeName(row.environment, 'customer', after.customerId))?.add(row.seq)
        naming.get(nodeName(row.environment, 'payment', linkOf(after)?.paymentId))?.add(row.seq)
      }
      reached = rows.at(-1)?.seq ?? reached
      return rows.length === ROWS_AT_ONCE
    }
    while (await inTurn(seekNext));
    for (let i = 0; i < some.length; i += SETTLED_AT_ONCE) {
      await inTurn(async (trx) => {
        while (await seekNext(trx));
        await settleThese(trx, run, some.slice(i, i + SETTLED_AT_ONCE), naming)
      })
    }
    for (const [name] of some) run.concerned.delete(name)
  }
}

async function readable(trx: Tx, run: Run, rows: readonly GroupRow[]) {
  const events = await readEvents(trx, run, rows)
  return events.flatMap(({ row, after }) => (after === null ? [] : [{ row, after }]))
}

async function settleThese(
  trx: Tx,
  run: Run,
  concerns: readonly (readonly [string, Concern])[],
  naming: ReadonlyMap<string, ReadonlySet<number>>,
): Promise<void> {
  const payments: NonNullable<Seeds['payments']>[number][] = []
  for (const [name, { environment, kind, id }] of concerns) {
    // Read again: an erasure may have removed something meanwhile.
    const rows = await loadGroupRows(trx, [...(naming.get(name) ?? [])])
    const events = (await readable(trx, run, rows)).map(({ after }) => after)
    if (kind === 'payment') payments.push({ environment, id, link: newestLink(id, events) })
    else {
      const { record, references } = personIn(id, events)
      if (run.mode === 'apply') await replacePerson(trx, { environment, customerId: id }, record, references)
      noteAhead(run, environment, id, { accounts: accountsIn(record?.facts ?? {}) })
    }
  }
  if (payments.length > 0) await settleGroups(trx, run, { payments })
}

function personIn(customerId: string, events: readonly NormalizedEvent[]) {
  const naming = events.filter((one) => one.customerId === customerId)
  const deletions = naming.filter(({ type }) => type === 'customer.deleted')
  const facts = naming.reduce<CustomerFacts>((known, event) => addFacts(known, event), {})
  const deletedAt = deletions.length === 0 ? null : Math.max(...deletions.map(({ createdAt }) => createdAt))
  const record = naming.length === 0 ? null : { customerId, facts, deletedAt }
  return { record, references: naming.flatMap(referencesIn) }
}

/** Null: none of them links it. */
function newestLink(paymentId: string, events: readonly NormalizedEvent[]): PaymentLink | null {
  const links = events.flatMap((event) => linkOf(event) ?? []).filter((link) => link.paymentId === paymentId)
  return links.reduce<PaymentLink | null>((a, b) => (isNewerLink(b, a ?? undefined) ? b : a), null)
}
