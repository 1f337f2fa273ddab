import type { Transaction } from 'kysely'
import { seqsInHistory } from '../entitlements/history.js'
import type { Environment } from '../provider/event.js'
import { glanceAtEvents, isMeant } from '../store/event-walk.js'
import {
  type CustomerKey,
  type GroupRow,
  loadEntitledCustomers,
  loadGroupRows,
  loadGroupRowsBeyond,
  loadHistories,
  type SourceHistory,
} from '../store/group-rows.js'
import type { JobMeaning } from '../store/recompute-job.js'
import type { Database } from '../store/schema.js'
import type { EventFilter } from '../store/stored-event.js'
import type { Seeds } from './group.js'
import { createSeqSet, isDone, type Run } from './run.js'

const ROWS_AT_ONCE = 500

/** How much is done between two opportunities to go on later. */
export interface Pace {
  /** Events whose groups are read together, at most. */
  readonly seeds: number
  /** Some milliseconds at a time, as a batch of deliveries takes; but a group is never cut. */
  readonly eventsPerTurn: number
  /** Done before its place is saved, where nothing had to be written: a save costs a sync of the disk. */
  readonly eventsPerSave: number
}

/** Does something in a transaction of its own, between deliveries. */
export type InTurn = <T>(work: (trx: Transaction<Database>) => Promise<T>) => Promise<T>

/** Goes through the events that are meant, in the order of arrival, up to the newest one as the job began. */
export interface Walk {
  /** The next ones that are not done. */
  read(trx: Transaction<Database>): Promise<readonly GroupRow[]>
  /**
   * Moves the job's place beyond those that were read last.
   * @param events how many their groups had
   */
  advance(events: number): void
}

/** Reads so many at a time that their groups have about as many events as a turn, by the groups before. */
export function walkEvents(run: Run, { seeds, eventsPerTurn }: Pace): Walk {
  const next = isList(run.job.scope) ? nextOfAll(run, run.job.scope) : nextMatching(run, run.job.scope)
  let limit = seeds
  let read: readonly GroupRow[] = []
  let reached = run.job.reached
  return {
    async read(trx) {
      ;({ rows: read, reached } = await next(trx, limit))
      return read
    },
    advance(events) {
      run.job = { ...run.job, reached }
      if (events > 0) limit = Math.min(seeds, Math.ceil((eventsPerTurn * read.length) / events))
    },
  }
}

export function isList(scope: JobMeaning['scope']): scope is readonly Environment[] {
  return Array.isArray(scope)
}

/** The next events beyond the job's place, and its place beyond them. */
type Next = (
  trx: Transaction<Database>,
  limit: number,
) => Promise<{ readonly rows: readonly GroupRow[]; readonly reached: number }>

function nextOfAll(run: Run, scope: readonly Environment[]): Next {
  return async (trx, limit) => {
    const { newest } = run.job
    const seqs: number[] = []
    let { reached } = run.job
    while (seqs.length < limit && reached < newest) {
      reached += 1
      if (!isDone(run, reached)) seqs.push(reached)
    }
    const rows = await loadNumbered(trx, seqs)
    return { rows: rows.filter(({ environment }) => scope.includes(environment)), reached }
  }
}

/** Those that follow one another are read as a stretch, which costs half as much. */
async function loadNumbered(
  trx: Transaction<Database>,
  seqs: readonly number[],
): Promise<readonly GroupRow[]> {
  const [first, last] = [seqs[0] ?? 0, seqs.at(-1) ?? 0]
  if (last - first >= 2 * seqs.length) return loadGroupRows(trx, seqs)
  const meant = new Set(seqs)
  const rows = await loadGroupRowsBeyond(trx, first - 1, last, last - first + 1)
  return rows.filter(({ seq }) => meant.has(seq))
}

function nextMatching(run: Run, filter: EventFilter): Next {
  const { newest } = run.job
  /** Where the search for them is, and those that it has found beyond the job's place. */
  let searched = run.job.reached
  let found: readonly number[] = []
  return async (trx, limit) => {
    found = found.filter((seq) => seq > run.job.reached)
    if (found.length === 0) {
      const glances = await glanceAtEvents(trx, filter, 'oldest first', searched)
      searched = Math.min(glances.at(-1)?.seq ?? newest, newest)
      found = glances.filter((one) => one.seq <= newest && isMeant(one, filter)).map(({ seq }) => seq)
    }
    const seqs = found.slice(0, limit)
    const rows = await loadGroupRows(
      trx,
      seqs.filter((seq) => !isDone(run, seq)),
    )
    return { rows, reached: found.length > limit ? Number(seqs.at(-1)) : searched }
  }
}

/** Finds the events that no source's history names, though they belong to one: only damage makes any. */
export async function* findUnlisted(
  { job: { newest } }: Run,
  inTurn: InTurn,
): AsyncGenerator<readonly GroupRow[]> {
  const listed = createSeqSet()
  for await (const sources of pages<SourceHistory>((last) => inTurn((trx) => nextSources(trx, last)))) {
    for (const { history } of sources) for (const seq of seqsInHistory(history) ?? []) listed.add(seq)
  }
  const nextRows = (trx: Transaction<Database>, last: GroupRow | undefined) =>
    loadGroupRowsBeyond(trx, last?.seq ?? 0, newest, ROWS_AT_ONCE)
  for await (const rows of pages<GroupRow>((last) => inTurn((trx) => nextRows(trx, last)))) {
    yield rows.filter(({ seq }) => !listed.has(seq))
  }
}

/** What no event leads to: sources without events, and entitlements of customers without sources. */
export async function sweep(
  environments: readonly Environment[],
  inTurn: InTurn,
  settle: (trx: Transaction<Database>, environment: Environment, seeds: Seeds) => Promise<void>,
): Promise<void> {
  const nextOrphans = (last: SourceHistory | undefined) =>
    inTurn(async (trx) => {
      const page = await nextSources(trx, last)
      const orphans = await withoutEvents(trx, page)
      for (const environment of environments) {
        const sources = orphans.filter((one) => one.environment === environment)
        if (sources.length > 0) await settle(trx, environment, { sources })
      }
      return page
    })
  for await (const _ of pages(nextOrphans));
  const nextCustomers = (last: CustomerKey | undefined) =>
    inTurn(async (trx) => {
      const page = await loadEntitledCustomers(trx, last ?? null, ROWS_AT_ONCE)
      for (const environment of environments) {
        const own = page.filter((one) => one.environment === environment && !one.hasSources)
        const customerIds = own.map(({ customerId }) => customerId)
        if (own.length > 0) await settle(trx, environment, { customerIds })
      }
      return page
    })
  for await (const _ of pages(nextCustomers));
}

/** @param load the page after the last row of the one before */
async function* pages<Row>(
  load: (last: Row | undefined) => Promise<readonly Row[]>,
): AsyncGenerator<readonly Row[]> {
  let page = await load(undefined)
  while (page.length > 0) {
    yield page
    page = await load(page.at(-1))
  }
}

function nextSources(trx: Transaction<Database>, last: SourceHistory | undefined) {
  return loadHistories(trx, last?.seq ?? Number.MIN_SAFE_INTEGER, ROWS_AT_ONCE)
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
