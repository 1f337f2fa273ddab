/* One pass over the stored events: which are done, what comes next, and what has to be searched for at the end. */

import { seqsInHistory } from '../entitlements/history.js'
import { isNewerLink, linkOf, type PaymentLink } from '../entitlements/source-of.js'
import type { Environment, NormalizedEvent } from '../provider/event.js'
import { addFacts, type CustomerFacts, type Reference, referencesIn } from '../provider/facts.js'
import type { CustomerRecord } from '../store/customers.js'
import { matchesFilter, newestSeq, scanEventHeaders } from '../store/event-walk.js'
import {
  type Concern,
  type JobPart,
  loadGroupRows,
  loadGroupRowsBeyond,
  loadHistories,
  placeOf,
  type ReplayCounts,
  type SourceHistory,
  type StoredJob,
} from '../store/recompute.js'
import { type Db, ENVIRONMENTS, type PersonKey } from '../store/schema.js'
import { concernsIn, type Differences, differencesIn } from './differences.js'
import {
  createEventReader,
  type Group,
  type GroupEvent,
  isWhole,
  nodeName,
  type ReadEvents,
  readGroup,
  type Seeds,
} from './group.js'

/** How much is done between two points where the job can be interrupted. */
export const PACE = {
  /** A few milliseconds of work, like a batch of deliveries; but a group is never split. */
  eventsPerTurn: 400,
  /** Events done without a write before the position is saved: saving costs a sync of the disk. */
  eventsPerSave: 20_000,
}

/** Used until the size of the groups is known. */
const FIRST_READ = 50
const ROWS_AT_ONCE = 500

type PassJob = Pick<StoredJob, 'scope' | 'endpoints' | 'policy' | 'newest'>

/** Where a pass begins, or one that was interrupted continues. */
type Place = Pick<StoredJob, 'reached' | 'counts'> & JobPart

/** A group, compared. */
export interface FoundGroup {
  readonly group: Group
  readonly differences: Differences
  /** Epoch milliseconds. */
  readonly now: number
}

/** The same, and what is known since. */
export interface Settled extends FoundGroup {
  readonly done: readonly number[]
  readonly concerned: readonly Concern[]
}

export interface Person extends PersonKey {
  /** Null: no event names them. */
  readonly record: CustomerRecord | null
  readonly references: readonly Reference[]
}

/**
 * What is done with what a pass finds. A comparison has only a `Db` to do it with, and can't write.
 */
export interface Work<Connection extends Db> {
  /** Reads one state of the store. Between two turns, deliveries are stored, and the job may be interrupted. */
  readonly look: <T>(look: (db: Db) => Promise<T>) => Promise<T>
  /**
   * A turn that settles what it finds.
   * @param find only reads, and may be called again: others may have changed what it found
   * @param settle called once, with what was found last
   */
  readonly turn: <Found extends { readonly groups: readonly FoundGroup[] }>(
    find: (db: Db, now: number) => Promise<Found>,
    settle: (db: Connection, found: Found) => Promise<void>,
  ) => Promise<void>
  /** A turn while nothing else is written. */
  readonly turnAlone: <T>(work: (db: Connection, now: number) => Promise<T>) => Promise<T>
  readonly settle: (db: Connection, settled: Settled) => Promise<void> | void
  readonly settlePerson: (db: Connection, person: Person) => Promise<void> | void
}

/** How far a pass is, changed by its named transitions alone. */
export type Pass = ReturnType<typeof createPass>

/** @param writes whether what it finds is written at once */
export function createPass(job: PassJob, from: Place, { writes }: { readonly writes: boolean }) {
  let { reached, counts } = from
  /** By event number; 1: done. */
  const done = new Uint8Array(job.newest + 1).fill(1, 0, reached + 1)
  for (const seq of from.ahead) done[seq] = 1
  /** By source number, up to the newest one when the pass began; 1: an event has led to it. */
  let settled = new Uint8Array()
  const leading = new Map<string, Set<number>>()
  /** By `nodeName`: customers and payments for which all events have to be searched. */
  const concerned = new Map<string, Concern>()
  const isDone = (seq: number): boolean => done[seq] === 1
  const readEvents = createEventReader(job, writes ? isDone : null)

  /** @returns those that were not known before */
  function concern(concerns: readonly Concern[]): readonly Concern[] {
    return concerns.filter((one) => {
      const name = nodeName(one.environment, one.kind, one.id)
      const isNew = !concerned.has(name)
      concerned.set(name, one)
      return isNew
    })
  }
  concern(from.concerned)

  return {
    job,
    /** With a dry run, the columns of events differ from what the events say now. */
    isDryReplay: job.endpoints !== null && !writes,
    reader: { policy: job.policy, readEvents, leading },
    isDone,
    isSettled: (source: number): boolean => settled[source] !== 0,
    /** All events up to this number are done. */
    reached: () => reached,
    counts: () => counts,
    /** The first of those whose search is due. */
    concerned: (limit: number) => [...concerned].slice(0, limit),
    moveTo(seq: number): void {
      reached = seq
    },
    /** Called before any source is settled. */
    countSources(newest: number): void {
      settled = new Uint8Array(newest + 1)
    },
    /** An event belongs to a source, payment or customer (`nodeName`), although nothing stored leads there. */
    lead(name: string, seq: number): void {
      leading.set(name, (leading.get(name) ?? new Set()).add(seq))
    },
    /** A group is settled: its events are done, and counted once. */
    finish(group: Group, differences: Differences): Pick<Settled, 'done' | 'concerned'> {
      for (const { seq } of group.sources.values()) settled[seq] = 1
      const fresh = group.events.filter(({ row }) => !isDone(row.seq))
      counts = countsAfter(counts, fresh, differences)
      // Those that came after the start may be done repeatedly.
      const seqs = fresh.map(({ row }) => row.seq).filter((seq) => seq <= job.newest)
      for (const seq of seqs) done[seq] = 1
      return { done: seqs, concerned: concern(concernsIn(group, differences)) }
    },
    finishConcerned(names: readonly string[]): void {
      for (const name of names) concerned.delete(name)
    },
  }
}

function countsAfter(counts: ReplayCounts, events: readonly GroupEvent[], differences: Differences) {
  const next = { ...counts }
  const changed = new Set(differences.events.filter((one) => one.saysOther).map(({ row }) => row.seq))
  for (const { row, again } of events) {
    if (again === null || again.kind === 'byHand') continue
    next[again.kind] += 1
    if (again.kind !== 'read') continue
    if (again.quarantined !== null) next.quarantined += 1
    if (!changed.has(row.seq)) continue
    next.changed += 1
    if (again.quarantined === null && row.disposition === 'quarantined') next.recovered += 1
  }
  return next
}

/** A pass, and what is done with what it finds. */
interface Run<Connection extends Db> extends Work<Connection> {
  readonly pass: Pass
  readonly eventsPerTurn: number
}

/** Settles all groups of the job, and then the customers that have to be searched for. */
export async function runPass<Connection extends Db>(
  pass: Pass,
  work: Work<Connection>,
  { eventsPerTurn }: typeof PACE,
): Promise<void> {
  const run = { ...work, pass, eventsPerTurn }
  await findUnlisted(run)
  await walk(run)
  if (isWhole(pass.job.scope)) await sweep(run, pass.job.scope)
  while (pass.concerned(1).length > 0) await settleConcerned(run)
}

/** The groups of these seeds. Only reads. */
async function findGroups({ pass }: Pick<Run<Db>, 'pass'>, db: Db, now: number, seeds: Seeds) {
  const groups: FoundGroup[] = []
  for (const environment of ENVIRONMENTS) {
    const group = await readGroup(db, pass.reader, environment, seeds)
    groups.push({ group, differences: await differencesIn(db, group, now), now })
  }
  return groups
}

async function settle<C extends Db>(run: Run<C>, db: C, groups: readonly FoundGroup[]): Promise<void> {
  for (const one of groups) {
    await run.settle(db, { ...one, ...run.pass.finish(one.group, one.differences) })
  }
}

/** Goes through the events of the job, in the order of arrival, up to the newest one when it began. */
async function walk<C extends Db>(run: Run<C>): Promise<void> {
  const { pass, eventsPerTurn } = run
  // Sized by the previous groups, so that its groups have about as many events as a turn.
  let limit = Math.min(FIRST_READ, eventsPerTurn)
  while (pass.reached() < pass.job.newest) {
    await run.turn(
      async (db, now) => {
        const next = await nextEvents(db, pass, limit)
        return { ...next, groups: await findGroups(run, db, now, { rows: next.rows }) }
      },
      async (db, { rows, reached, groups }) => {
        await settle(run, db, groups)
        pass.moveTo(reached)
        const events = groups.reduce((sum, { group }) => sum + group.events.length, 0)
        if (events > 0) limit = Math.ceil((eventsPerTurn * rows.length) / events)
      },
    )
  }
}

/** The next events that are not done, and the job's position after them. */
async function nextEvents(db: Db, { job: { scope, newest }, isDone, ...pass }: Pass, limit: number) {
  const from = pass.reached()
  if (!isWhole(scope)) {
    const headers = await scanEventHeaders(db, scope, 'oldest first', from)
    const searched = Math.min(headers.at(-1)?.seq ?? newest, newest)
    const found = headers.filter((one) => one.seq <= newest && !isDone(one.seq) && matchesFilter(one, scope))
    const seqs = found.slice(0, limit).map(({ seq }) => seq)
    const reached = found.length > limit ? (seqs.at(-1) ?? searched) : searched
    return { rows: await loadGroupRows(db, seqs), reached }
  }
  const seqs: number[] = []
  let reached = from
  while (seqs.length < limit && reached < newest) {
    reached += 1
    if (!isDone(reached)) seqs.push(reached)
  }
  // Reading a range costs half as much as the same rows by number.
  const isStretch = reached - from < 2 * seqs.length
  const rows = isStretch
    ? await loadGroupRowsBeyond(db, from, reached, reached - from)
    : await loadGroupRows(db, seqs)
  return { rows: rows.filter((row) => scope.includes(row.environment) && !isDone(row.seq)), reached }
}

/**
 * Finds events that belong to a source but are missing from its history: a source is folded from all of its events, or
 * from none. Only damage causes this.
 */
async function findUnlisted<C extends Db>({ pass, look }: Run<C>): Promise<void> {
  const { newest } = pass.job
  const listed = new Uint8Array(newest + 1)
  let after: number | undefined
  for (let isLast = false; !isLast; ) {
    const page = await look((db) => loadHistories(db, after, ROWS_AT_ONCE))
    for (const { history } of page) for (const seq of seqsInHistory(history) ?? []) listed[seq] = 1
    const newestSource = page.at(-1)?.seq
    if (newestSource !== undefined) pass.countSources(newestSource)
    isLast = page.length < ROWS_AT_ONCE
    after = newestSource
  }
  for (let reached = 0; reached < newest; ) {
    const seqs: number[] = []
    for (; reached < newest && seqs.length < ROWS_AT_ONCE; reached += 1) {
      if (listed[reached + 1] !== 1) seqs.push(reached + 1)
    }
    for (const row of await look((db) => loadGroupRows(db, seqs))) {
      const place = placeOf(row)
      if (place !== null) pass.lead(nodeName(row.environment, place.kind, place.id), row.seq)
    }
  }
}

/**
 * Settles the sources that no event has led to: after an interruption, all those that were settled before it; without
 * one, only damage causes them.
 */
async function sweep<C extends Db>(run: Run<C>, environments: readonly Environment[]): Promise<void> {
  let after: number | undefined
  for (let isLast = false; !isLast; ) {
    await run.turn(
      async (db, now) => {
        const page = await loadHistories(db, after, ROWS_AT_ONCE)
        const { sources, looked } = unsettledIn(page, run, environments)
        const groups = sources.length > 0 ? await findGroups(run, db, now, { sources }) : []
        return { page, looked, groups }
      },
      async (db, { page, looked, groups }) => {
        await settle(run, db, groups)
        isLast = looked === page.length && looked < ROWS_AT_ONCE
        after = page[looked - 1]?.seq
      },
    )
  }
}

/** As many as one turn may have, and how many of the page were looked at for that, from the first one on. */
function unsettledIn(
  page: readonly SourceHistory[],
  { pass, eventsPerTurn }: Pick<Run<Db>, 'pass' | 'eventsPerTurn'>,
  environments: readonly Environment[],
) {
  const sources: SourceHistory[] = []
  let looked = 0
  let events = 0
  for (const one of page) {
    if (events >= eventsPerTurn) break
    looked += 1
    if (!environments.includes(one.environment) || pass.isSettled(one.seq)) continue
    sources.push(one)
    events += seqsInHistory(one.history)?.length ?? 0
  }
  return { sources, looked }
}

/** Bounds the memory. */
const SOUGHT_AT_ONCE = 10_000
const SETTLED_AT_ONCE = 200

/**
 * Computes again the facts and links of the affected customers and payments from all events. No source leads to all of
 * a customer's events, or to all events that link a payment, so all stored events are searched for their ids.
 */
async function settleConcerned<C extends Db>(run: Run<C>): Promise<void> {
  const { pass } = run
  const some = pass.concerned(SOUGHT_AT_ONCE)
  const naming = new Map(some.map(([name]) => [name, new Set<number>()]))
  // Not all events have their payment in a column; and in a dry run, the columns differ from the new readings.
  const isAnyAsked = pass.isDryReplay || some.some(([, { kind }]) => kind === 'payment')
  let reached = 0
  const seekNext = async (db: Db, upTo: number): Promise<boolean> => {
    const rows = await loadGroupRowsBeyond(db, reached, upTo, ROWS_AT_ONCE)
    const asked = rows.filter(
      ({ environment, customer_id: id }) => isAnyAsked || naming.has(nodeName(environment, 'customer', id)),
    )
    for (const { row, after } of await pass.reader.readEvents(db, asked)) {
      if (after === null) continue
      naming.get(nodeName(row.environment, 'customer', after.customerId))?.add(row.seq)
      naming.get(nodeName(row.environment, 'payment', linkOf(after)?.paymentId))?.add(row.seq)
    }
    reached = rows.at(-1)?.seq ?? reached
    return rows.length === ROWS_AT_ONCE
  }
  // Of those that come later, a lower number may be committed after a higher one.
  const newest = await run.turnAlone((db) => newestSeq(db))
  while (await run.look((db) => seekNext(db, newest)));
  reached = Math.max(reached, newest)
  for (let i = 0; i < some.length; i += SETTLED_AT_ONCE) {
    await run.turnAlone(async (db, now) => {
      // Those that have arrived since: none is under way.
      while (await seekNext(db, Number.MAX_SAFE_INTEGER));
      const payments: NonNullable<Seeds['payments']>[number][] = []
      for (const [name, { environment, kind, id }] of some.slice(i, i + SETTLED_AT_ONCE)) {
        const events = await eventsNow(db, pass.reader.readEvents, naming.get(name))
        if (kind === 'payment') payments.push({ environment, id, link: newestLink(id, events) })
        else await run.settlePerson(db, { environment, ...personIn(id, events) })
      }
      if (payments.length > 0) await settle(run, db, await findGroups(run, db, now, { payments }))
    })
  }
  pass.finishConcerned(some.map(([name]) => name))
}

/** Read again: an erasure may have removed something meanwhile. */
async function eventsNow(db: Db, readEvents: ReadEvents, seqs: Iterable<number> = []) {
  const events = await readEvents(db, await loadGroupRows(db, [...seqs]))
  return events.flatMap(({ after }) => after ?? [])
}

function personIn(customerId: string, events: readonly NormalizedEvent[]): Omit<Person, 'environment'> {
  const naming = events.filter((one) => one.customerId === customerId)
  const deletions = naming.filter(({ type }) => type === 'customer.deleted')
  const facts = naming.reduce<CustomerFacts>((known, event) => addFacts(known, event), {})
  const deletedAt = deletions.length === 0 ? null : Math.max(...deletions.map(({ createdAt }) => createdAt))
  const record = naming.length === 0 ? null : { customerId, facts, deletedAt }
  return { customerId, record, references: naming.flatMap(referencesIn) }
}

/** Null: none of them links it. */
function newestLink(paymentId: string, events: readonly NormalizedEvent[]): PaymentLink | null {
  const links = events.flatMap((event) => linkOf(event) ?? []).filter((link) => link.paymentId === paymentId)
  return links.reduce<PaymentLink | null>((a, b) => (isNewerLink(b, a ?? undefined) ? b : a), null)
}
