import type { Kysely, Transaction } from 'kysely'
import { seqsInHistory } from '../entitlements/history.js'
import { LatchkeyError } from '../errors.js'
import { neverStopping, type WorkOptions } from '../ingest/work-options.js'
import type { Environment } from '../provider/event.js'
import { glanceAtEvents, matchesFilter } from '../store/event-walk.js'
import { clearJob } from '../store/recompute-job.js'
import {
  type EntitledCustomer,
  type GroupRow,
  loadEntitledCustomers,
  loadGroupRows,
  loadGroupRowsBeyond,
  loadHistories,
  placeOf,
  type SourceHistory,
} from '../store/recompute-rows.js'
import type { Database } from '../store/schema.js'
import { type InTurn, settleConcerned } from './concerned.js'
import { changesSince, type RecomputeReport, summarise } from './report.js'
import {
  beginRun,
  isDone,
  isWhole,
  nodeName,
  noteLeading,
  type RecomputePlan,
  type Run,
  saveRun,
} from './run.js'
import { settleGroups } from './settle.js'

/** How much is done between two opportunities to go on later. */
export interface Pace {
  /** Some milliseconds at a time, as a batch of deliveries takes; but a group is never cut. */
  readonly eventsPerTurn: number
  /** Done before its place is saved, where nothing had to be written: a save costs a sync of the disk. */
  readonly eventsPerSave: number
}

const PACE: Pace = { eventsPerTurn: 400, eventsPerSave: 20_000 }

const FIRST_READ = 50
const SAMPLE_SIZE = 10
const ROWS_AT_ONCE = 500

export interface RecomputeDeps {
  readonly db: Kysely<Database>
  readonly clock: () => number
  readonly pace?: Pace
}

/**
 * Works out again what follows from the stored events, group by group, and reports or writes what differs. Each turn is
 * one transaction that leaves the store whole, so deliveries go on being taken in between.
 * @throws {LatchkeyError} `rebuild_interrupted`, `replay_interrupted`; `rebuild_running`; `store_unavailable`, at the end,
 * where an event can't be read
 */
export async function recompute(
  { db, clock, pace = PACE }: RecomputeDeps,
  plan: RecomputePlan,
  { onProgress = () => {}, isStopping = neverStopping }: WorkOptions = {},
): Promise<RecomputeReport> {
  const run = await db.transaction().execute((trx) => beginRun(trx, plan, clock))
  const isWriting = plan.mode === 'apply'
  const once: InTurn = async (work) => {
    const result = await (isWriting ? committed : rolledBack)(db, async (trx) => {
      const done = await work(trx)
      if (run.hasWritten || run.job.reached - run.savedAt >= pace.eventsPerSave) await saveRun(trx, run)
      return done
    })
    onProgress(run.job.reached, run.job.newest)
    if (await isStopping()) {
      await db.transaction().execute((trx) => saveRun(trx, run))
      const code = plan.endpoints === null ? 'rebuild_interrupted' : 'replay_interrupted'
      throw new LatchkeyError(code, 'Stopped: run it again, and it goes on.')
    }
    return result
  }
  const inTurn: InTurn = async (work) => {
    const result = await once(work)
    if (run.unlisted !== 'needed') return result
    await noteUnlisted(run, once)
    return once(work)
  }

  await inTurn(async () => {})
  await walk(run, pace, inTurn)
  if (isWhole(run.job.scope)) await sweep(run, run.job.scope, inTurn)
  await settleConcerned(run, inTurn)

  const { newest, changesAfter } = run.job
  const { differences, access, customers } = run.found
  const changed = isWriting ? await changesSince(db, changesAfter) : [...access.values()].flat()
  if (isWriting) await db.transaction().execute(clearJob)
  onProgress(newest, newest)
  if (run.unreadable !== null && plan.mode !== 'verify') throw run.unreadable
  const { sampleSize = SAMPLE_SIZE } = plan
  return {
    counts: run.counts,
    access: summarise(changed, plan.mode === 'verify' ? SAMPLE_SIZE : sampleSize),
    customers: [...customers.values()],
    differences: {
      count: differences.size,
      named: [...differences.values()].slice(0, sampleSize),
      problem: run.unreadable?.message ?? null,
    },
  }
}

type Work<T> = (trx: Transaction<Database>) => Promise<T>

function committed<T>(db: Kysely<Database>, work: Work<T>): Promise<T> {
  return db.transaction().execute(work)
}

async function rolledBack<T>(db: Kysely<Database>, work: Work<T>): Promise<T> {
  const trx = await db.startTransaction().execute()
  try {
    return await work(trx)
  } finally {
    await trx.rollback().execute()
  }
}

/** Goes through the events that are meant, in the order of arrival, up to the newest one as the job began. */
async function walk(run: Run, { eventsPerTurn }: Pace, inTurn: InTurn): Promise<void> {
  // As many as have groups of about as many events as a turn, by those before.
  let limit = Math.min(FIRST_READ, eventsPerTurn)
  while (run.job.reached < run.job.newest) {
    await inTurn(async (trx) => {
      const { rows, reached } = await nextEvents(trx, run, limit)
      const events = await settleGroups(trx, run, { rows })
      if (run.unlisted === 'needed') return
      run.job = { ...run.job, reached }
      if (events > 0) limit = Math.ceil((eventsPerTurn * rows.length) / events)
    })
  }
}

/** The next events that are not done, and the job's place beyond them. */
async function nextEvents(
  trx: Transaction<Database>,
  run: Run,
  limit: number,
): Promise<{ readonly rows: readonly GroupRow[]; readonly reached: number }> {
  const { scope, newest, reached: from } = run.job
  if (!isWhole(scope)) {
    const glances = await glanceAtEvents(trx, scope, 'oldest first', from)
    const searched = Math.min(glances.at(-1)?.seq ?? newest, newest)
    const found = glances.filter(
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
  // A stretch costs half as much as the same rows by their numbers.
  const isStretch = reached - from < 2 * seqs.length
  const rows = isStretch
    ? await loadGroupRowsBeyond(trx, from, reached, reached - from)
    : await loadGroupRows(trx, seqs)
  return { rows: rows.filter((row) => scope.includes(row.environment) && !isDone(run, row.seq)), reached }
}

/** Finds the events that no source's history names, though they belong to one: only damage makes any. */
async function noteUnlisted(run: Run, inTurn: InTurn): Promise<void> {
  const { newest } = run.job
  const listed = new Uint8Array(newest + 1)
  await eachPage<SourceHistory>(inTurn, async (trx, last) => {
    const sources = await loadHistories(trx, last?.seq, ROWS_AT_ONCE)
    for (const { history } of sources) for (const seq of seqsInHistory(history) ?? []) listed[seq] = 1
    return sources
  })
  await eachPage<GroupRow>(inTurn, async (trx, last) => {
    const rows = await loadGroupRowsBeyond(trx, last?.seq ?? 0, newest, ROWS_AT_ONCE)
    for (const row of rows) {
      const place = placeOf(row)
      if (place !== null && listed[row.seq] !== 1) noteLeading(run, nodeName(row.environment, place), row.seq)
    }
    return rows
  })
  run.unlisted = 'known'
}

/** Settles what no event leads to: sources without events, and entitlements of customers without sources. */
async function sweep(run: Run, environments: readonly Environment[], inTurn: InTurn): Promise<void> {
  const isMeant = ({ environment }: { readonly environment: Environment }) =>
    environments.includes(environment)
  await eachPage<SourceHistory>(inTurn, async (trx, last) => {
    const page = await loadHistories(trx, last?.seq, ROWS_AT_ONCE)
    const sources = (await withoutEvents(trx, page)).filter(isMeant)
    if (sources.length > 0) await settleGroups(trx, run, { sources })
    return page
  })
  await eachPage<EntitledCustomer>(inTurn, async (trx, last) => {
    const page = await loadEntitledCustomers(trx, last, ROWS_AT_ONCE)
    const customers = page.filter((one) => isMeant(one) && !one.hasSources)
    if (customers.length > 0) await settleGroups(trx, run, { customers })
    return page
  })
}

/** Does something with all rows, a page in each turn. */
async function eachPage<Row>(
  inTurn: InTurn,
  work: (trx: Transaction<Database>, last: Row | undefined) => Promise<readonly Row[]>,
): Promise<void> {
  let last: Row | undefined
  do last = await inTurn(async (trx) => (await work(trx, last)).at(-1))
  while (last !== undefined)
}

/** Those to which the first event that their history names does not belong: to the others, their events have led. */
async function withoutEvents(
  trx: Transaction<Database>,
  sources: readonly SourceHistory[],
): Promise<readonly SourceHistory[]> {
  const first = sources.map(({ history }) => seqsInHistory(history)?.[0] ?? 0)
  const rows = new Map((await loadGroupRows(trx, first)).map((row) => [row.seq, row]))
  return sources.filter(({ environment, kind, id }, i) => {
    const row = rows.get(first[i] ?? 0)
    return row?.environment !== environment || row.source_kind !== kind || row.source_id !== id
  })
}
