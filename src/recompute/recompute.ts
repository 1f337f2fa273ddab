import type { Kysely, Transaction } from 'kysely'
import { seqsInHistory } from '../entitlements/history.js'
import type { SourceKey } from '../entitlements/model.js'
import { type PaymentLink, sourceKey } from '../entitlements/source-of.js'
import type { EventFilter } from '../entitlements/stored-event.js'
import { LatchkeyError } from '../errors.js'
import { isChange } from '../ingest/settle.js'
import { neverStopping, type WorkOptions } from '../ingest/work-options.js'
import type { Environment, NormalizedEvent } from '../provider/event.js'
import { loadAllChanges } from '../store/changes.js'
import { ENVIRONMENTS } from '../store/environments.js'
import { glanceAtEvents, isMeant } from '../store/event-walk.js'
import {
  type EventPlace,
  type GroupRow,
  loadCustomersWithoutSources,
  loadGroupRows,
  loadGroupRowsBeyond,
  loadHistories,
  loadPlaces,
  loadPlacesOf,
  type SourceHistory,
} from '../store/group-rows.js'
import { clearJob, type ReplayCounts } from '../store/recompute-job.js'
import type { Database } from '../store/schema.js'
import { eventInFormIfReadable } from '../store/stored-form.js'
import { type EventGlimpse, erasuresMark, replacePeople } from '../store/tellings.js'
import { type AccessDifference, type DifferenceSummary, summaryOf } from './access-difference.js'
import {
  accessDifferences,
  applyGroup,
  compareGroup,
  type GroupDifferences,
  type StateDifference,
  stateDifferences,
} from './compare-group.js'
import {
  customerNode,
  type Group,
  type GroupEvent,
  keyIn,
  paymentNode,
  readGroup,
  type Seeds,
  sourceNode,
} from './group.js'
import { askNext, nothingTold, type Told, textOfTelling, toldOf } from './people.js'
import { readAgain, type TakenIds } from './read-again.js'
import {
  beginRun,
  createSeqSet,
  noteConcerned,
  noteDone,
  type RecomputePlan,
  type Run,
  saveRun,
} from './run.js'

export interface RecomputeReport {
  /** Of a replay. */
  readonly counts: ReplayCounts
  readonly access: Readonly<Record<Environment | 'all', DifferenceSummary>>
  /** Of a replay that writes nothing: everybody whose access or accounts would be others. */
  readonly customers: readonly CustomerAhead[]
}

/** A customer as they would be. */
export interface CustomerAhead {
  readonly environment: Environment
  readonly customerId: string
  /** Null: as they are stored. */
  readonly activeProducts: readonly string[] | null
  readonly accounts: { readonly communityId: string | null; readonly messengerId: string | null } | null
}

export interface RecomputeOptions extends WorkOptions {
  /** Told of everything that is stored otherwise than its events say; where it is written, of nothing. */
  readonly onDifference?: (difference: StateDifference) => void
  /** How many differences of access are named. */
  readonly sampleSize?: number
}

/** How much is done between two opportunities to go on later. */
export interface Pace {
  /** Events whose groups are read together. */
  readonly seeds: number
  /** Some milliseconds at a time, as a batch of deliveries takes; but a group is never cut. */
  readonly eventsPerTurn: number
  /** Done before its place is saved, where nothing had to be written: a save costs a sync of the disk. */
  readonly eventsPerSave: number
}

const PACE: Pace = { seeds: 64, eventsPerTurn: 400, eventsPerSave: 20_000 }

const SAMPLE_SIZE = 10
const PLACES_AT_ONCE = 2_000
const HISTORIES_AT_ONCE = 500
const CHANGES_AT_ONCE = 1_000
/** Customers and payments about which all events are asked at once: bounds the memory. */
const CONCERNED_AT_ONCE = 10_000
const GLIMPSES_AT_ONCE = 1_000
const WRITTEN_AT_ONCE = 200

/**
 * @throws {LatchkeyError} `rebuild_interrupted`, `replay_interrupted`; `rebuild_running`; `store_unavailable`, at the end,
 * where an event can't be read
 */
export type Recompute = (plan: RecomputePlan, options?: RecomputeOptions) => Promise<RecomputeReport>

export interface RecomputeDeps {
  /** Where nothing is to be written, a connection that only reads will do. */
  readonly db: Kysely<Database>
  readonly clock: () => number
  readonly pace?: Pace
}

/**
 * Works out again what follows from the stored events, group by group, and reports or writes what differs. Each turn is
 * one transaction that leaves the store whole, so deliveries go on being taken in between.
 */
export function createRecompute({ db, clock, pace = PACE }: RecomputeDeps): Recompute {
  return async (
    plan,
    { onProgress = () => {}, isStopping = neverStopping, onDifference, sampleSize } = {},
  ) => {
    const run = await beginRun(db, plan)
    const settling = createSettling(run, { clock, onDifference })
    const once = async <T>(work: (trx: Transaction<Database>) => Promise<T>): Promise<T> => {
      const result = await db.transaction().execute(work)
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
      if (!settling.asksForUnlisted()) return result
      await findUnlisted(run, settling, once)
      settling.noteUnlisted([])
      return once(work)
    }

    await inTurn(async () => {})
    const { scope } = run.job
    const walk = isList(scope) ? walkAll(run, scope, pace.seeds) : walkFiltered(run, scope, pace.seeds)
    while (run.job.reached < run.job.newest) {
      await inTurn((trx) => takeTurn(trx, run, settling, walk, pace))
    }
    if (isList(scope)) await sweep(scope, settling, inTurn)
    for (const environment of ENVIRONMENTS) await askAgain(run, environment, settling, inTurn)

    const access = await accessReport(db, run, settling, sampleSize ?? SAMPLE_SIZE)
    if (run.writes) await db.transaction().execute(clearJob)
    onProgress(run.job.newest, run.job.newest)
    settling.assertReadable()
    return { counts: run.job.counts, access, customers: settling.customersAhead() }
  }
}

type InTurn = <T>(work: (trx: Transaction<Database>) => Promise<T>) => Promise<T>

interface Walk {
  /** The next events that are meant and not done. */
  read(trx: Transaction<Database>): Promise<readonly GroupRow[]>
  /** Goes on beyond them. */
  advance(): void
}

function walkAll(run: Run, scope: readonly Environment[], limit: number): Walk {
  let next = 0
  return {
    async read(trx) {
      const { reached, newest } = run.job
      const rows = await loadGroupRowsBeyond(trx, reached, newest, limit)
      next = rows.length < limit ? newest : (rows.at(-1)?.seq ?? newest)
      return rows.filter(({ seq, environment }) => scope.includes(environment) && !run.isDone(seq))
    },
    advance() {
      run.job = { ...run.job, reached: next }
    },
  }
}

function walkFiltered(run: Run, filter: EventFilter, limit: number): Walk {
  const { newest } = run.job
  let seen = run.job.reached
  let waiting: readonly number[] = []
  return {
    async read(trx) {
      if (waiting.length === 0) {
        const glances = await glanceAtEvents(trx, filter, 'oldest first', seen)
        seen = Math.min(glances.at(-1)?.seq ?? newest, newest)
        waiting = glances.filter((one) => one.seq <= newest && isMeant(one, filter)).map(({ seq }) => seq)
      }
      return loadGroupRows(
        trx,
        waiting.slice(0, limit).filter((seq) => !run.isDone(seq)),
      )
    },
    advance() {
      const last = waiting[limit - 1]
      waiting = waiting.slice(limit)
      run.job = { ...run.job, reached: waiting.length > 0 && last !== undefined ? last : seen }
    },
  }
}

function isList(scope: RecomputePlan['scope']): scope is readonly Environment[] {
  return Array.isArray(scope)
}

async function takeTurn(
  trx: Transaction<Database>,
  run: Run,
  settling: Settling,
  walk: Walk,
  pace: Pace,
): Promise<void> {
  let events = 0
  while (events < pace.eventsPerTurn && run.job.reached < run.job.newest) {
    const rows = await walk.read(trx)
    for (const environment of ENVIRONMENTS) {
      const own = rows.filter((row) => row.environment === environment && !run.isDone(row.seq))
      if (own.length > 0) events += await settling.settle(trx, environment, { rows: own })
    }
    if (settling.asksForUnlisted()) break
    walk.advance()
  }
  await settling.saveIfDue(trx, pace.eventsPerSave)
}

/** Finds the events that no source's history names, though they belong to one: only damage makes any. */
async function findUnlisted({ job: { newest } }: Run, settling: Settling, inTurn: InTurn): Promise<void> {
  const listed = createSeqSet()
  let source: number | undefined = Number.MIN_SAFE_INTEGER
  while (source !== undefined) {
    const after: number = source
    const rows = await inTurn((trx) => loadHistories(trx, after, HISTORIES_AT_ONCE))
    for (const { history } of rows) for (const seq of seqsInHistory(history) ?? []) listed.add(seq)
    source = rows.at(-1)?.seq
  }
  for (let reached = 0; reached < newest; ) {
    const after = reached
    const places = await inTurn((trx) => loadPlaces(trx, after, newest, PLACES_AT_ONCE))
    settling.noteUnlisted(places.filter(({ seq }) => !listed.has(seq)))
    reached = places.at(-1)?.seq ?? newest
  }
}

/** What no event leads to: sources without events, and entitlements of customers without sources. */
async function sweep(
  environments: readonly Environment[],
  { settle, saveIfDue }: Settling,
  inTurn: InTurn,
): Promise<void> {
  let source: number | undefined = Number.MIN_SAFE_INTEGER
  while (source !== undefined) {
    const after: number = source
    source = await inTurn(async (trx) => {
      const found = await loadHistories(trx, after, HISTORIES_AT_ONCE)
      const sources = await withoutEvents(trx, found)
      for (const environment of environments) {
        const own = sources.filter((one) => one.environment === environment)
        if (own.length > 0) await settle(trx, environment, { sources: own })
      }
      await saveIfDue(trx)
      return found.at(-1)?.seq
    })
  }
  let customer: Awaited<ReturnType<typeof loadCustomersWithoutSources>>['next'] = null
  do {
    const after: typeof customer = customer
    customer = await inTurn(async (trx) => {
      const { found, next } = await loadCustomersWithoutSources(trx, after, HISTORIES_AT_ONCE)
      for (const environment of environments) {
        const own = found.filter((one) => one.environment === environment)
        const customerIds = own.map(({ customerId }) => customerId)
        if (customerIds.length > 0) await settle(trx, environment, { customerIds })
      }
      await saveIfDue(trx)
      return next
    })
  } while (customer !== null)
}

/** Those to which the first event that their history names does not belong: to the others, their events have led. */
async function withoutEvents(
  trx: Transaction<Database>,
  sources: readonly SourceHistory[],
): Promise<readonly SourceHistory[]> {
  const first = sources.map(({ history }) => seqsInHistory(history)?.[0] ?? 0)
  const places = new Map((await loadPlacesOf(trx, first)).map((place) => [place.seq, place]))
  return sources.filter(({ environment, kind, id }, i) => {
    const place = places.get(first[i] ?? 0)
    return place?.environment !== environment || place.source_kind !== kind || place.source_id !== id
  })
}

/** Asks all events of an environment again about whom and what is concerned. */
async function askAgain(
  run: Run,
  environment: Environment,
  settling: Settling,
  inTurn: InTurn,
): Promise<void> {
  const { customerIds, paymentIds } = run.concerned[environment]
  while (customerIds.size + paymentIds.size > 0) {
    const people = [...customerIds].slice(0, CONCERNED_AT_ONCE)
    const payments = [...paymentIds].slice(0, CONCERNED_AT_ONCE)
    if (!(await askAbout(nothingTold(environment, people, payments), settling, inTurn))) continue
    for (const id of people) customerIds.delete(id)
    for (const id of payments) paymentIds.delete(id)
  }
}

/** @returns whether that holds: false where an erasure has taken something back meanwhile */
async function askAbout(told: Told, settling: Settling, inTurn: InTurn): Promise<boolean> {
  const mark = await inTurn(erasuresMark)
  while (await inTurn((trx) => settling.ask(trx, told)));
  const people = [...told.people]
  for (let i = 0; i < people.length; i += WRITTEN_AT_ONCE) {
    const some = people.slice(i, i + WRITTEN_AT_ONCE)
    const isWritten = await inTurn(async (trx) => {
      while (await settling.ask(trx, told));
      if ((await erasuresMark(trx)) !== mark) return false
      await settling.settlePeople(trx, told, new Map(some))
      return true
    })
    if (!isWritten) return false
  }
  const payments = [...told.links.keys()]
  for (let i = 0; i < payments.length; i += WRITTEN_AT_ONCE) {
    const paymentIds = payments.slice(i, i + WRITTEN_AT_ONCE)
    await inTurn((trx) => settling.settle(trx, told.environment, { paymentIds }, told.links))
  }
  return true
}

interface Settling {
  /** Compares the groups of these seeds, or brings them in order; answers how many events they have. */
  settle(
    trx: Transaction<Database>,
    environment: Environment,
    seeds: Seeds,
    told?: ReadonlyMap<string, PaymentLink | null>,
  ): Promise<number>
  /** Asks the next events about whom it is to be told of. */
  ask(trx: Transaction<Database>, told: Told): Promise<boolean>
  settlePeople(trx: Transaction<Database>, told: Told, people: Told['people']): Promise<void>
  saveIfDue(trx: Transaction<Database>, eventsPerSave?: number): Promise<void>
  /** Whether a group was left as it is until it is known which events of its sources no history names. */
  asksForUnlisted(): boolean
  noteUnlisted(places: readonly EventPlace[]): void
  differences(): Iterable<AccessDifference>
  customersAhead(): readonly CustomerAhead[]
  /** @throws {LatchkeyError} `store_unavailable`: what could not be read, and was not named as a difference */
  assertReadable(): void
}

const NOTHING_TOLD: ReadonlyMap<string, PaymentLink | null> = new Map()

function createSettling(
  run: Run,
  {
    clock,
    onDifference,
  }: Pick<RecomputeDeps, 'clock'> & { readonly onDifference: RecomputeOptions['onDifference'] | undefined },
): Settling {
  const { endpoints, scope, newest, policy } = run.job
  const isTrial = endpoints !== null && !run.writes
  const taken: TakenIds = new Map()
  const unreadable: LatchkeyError[] = []
  let [isWritten, events] = [false, 0]
  /* Where nothing is written, what is to be known of it nevertheless: */
  const named = new Set<string>()
  const accessOf = new Map<string, readonly AccessDifference[]>()
  const ahead = new Map<string, CustomerAhead>()
  const leading = new Map<string, Set<number>>()
  /** Of events that no history names. */
  let unlisted: 'unknown' | 'asked for' | 'known' = 'unknown'

  const isToRead = (row: GroupRow): boolean =>
    row.seq <= newest &&
    // Once it is written, it is stored as it is read.
    !(run.writes && run.isDone(row.seq)) &&
    (isList(scope) ? scope.includes(row.environment) : isMeant(row, scope))

  function readRows(trx: Transaction<Database>, environment: Environment, rows: readonly GroupRow[]) {
    const seqs = endpoints === null ? [] : rows.filter(isToRead).map(({ seq }) => seq)
    return readAgain(trx, environment, seqs, endpoints ?? {}, taken)
  }

  function count(event: GroupEvent, changed: ReadonlySet<number>): void {
    const { row, again } = event
    if (again === null || run.isDone(row.seq)) return
    run.job = { ...run.job, counts: added(run.job.counts, countsOf(event, changed.has(row.seq))) }
  }

  function noteReadings(environment: Environment, { readings }: GroupDifferences): void {
    for (const { event, stored } of readings) {
      if (textOfTelling(stored.before) === textOfTelling(event)) continue
      for (const id of [stored.before?.customerId, event?.customerId, stored.row.customer_id]) {
        if (id) noteConcerned(run, environment, 'customerIds', id)
      }
    }
  }

  function noteCompared(group: Group, differences: GroupDifferences): void {
    if (onDifference !== undefined) {
      for (const difference of stateDifferences(group, differences, clock())) {
        const name = JSON.stringify(difference)
        if (!named.has(name)) onDifference(difference)
        named.add(name)
      }
    }
    for (const [customerId, changes] of accessDifferences(group, differences)) {
      const name = `${group.environment} ${customerId}`
      if (changes.length > 0) accessOf.set(name, changes)
      else accessOf.delete(name)
      if (!isTrial || (changes.length === 0 && !ahead.has(name))) continue
      const after = differences.access.get(customerId)?.after ?? []
      const activeProducts = after.filter(({ active }) => active).map(({ productId }) => productId)
      const { accounts } = ahead.get(name) ?? { accounts: null }
      ahead.set(name, { environment: group.environment, customerId, activeProducts, accounts })
    }
    noteLeading(group, differences)
  }

  function leadTo(environment: Environment, node: string, seq: number): void {
    const name = `${environment} ${node}`
    leading.set(name, (leading.get(name) ?? new Set()).add(seq))
  }

  /** What the next groups are to know of these events, since it is written nowhere. */
  function noteLeading(group: Group, { readings, moved, sources }: GroupDifferences): void {
    const lead = (node: string, seq: number) => leadTo(group.environment, node, seq)
    const leadToPlace = (was: SourceKey | null, is: SourceKey | null, seq: number): void => {
      if (is !== null && (was === null || sourceKey(was) !== sourceKey(is))) lead(sourceNode(is), seq)
    }
    const rows = new Map(group.events.map(({ row }) => [row.seq, row]))
    for (const { row, stored, source } of readings) {
      leadToPlace(keyIn(row), source, row.seq)
      const paymentId = paymentIn(stored.after)
      if (paymentId !== null && paymentId !== paymentIn(stored.before)) lead(paymentNode(paymentId), row.seq)
    }
    for (const { seq, source } of moved) {
      const row = rows.get(seq)
      if (row !== undefined) leadToPlace(keyIn(row), source, seq)
    }
    for (const { key, folded } of sources) {
      const name = sourceKey(key)
      const customerId = folded?.state.customerId ?? null
      if (customerId === null || customerId === group.sources.get(name)?.customer_id) continue
      for (const [seq, place] of group.derived.places) {
        if (place !== null && sourceKey(place) === name) lead(customerNode(customerId), seq)
      }
    }
  }

  return {
    async settle(trx, environment, seeds, told = NOTHING_TOLD) {
      const now = clock()
      const group = await readGroup(trx, seeds, {
        environment,
        policy,
        told,
        readAgain: (rows) => readRows(trx, environment, rows),
        leadingTo: (node) => leading.get(`${environment} ${node}`) ?? [],
      })
      const differences = await compareGroup(trx, group, now)
      if (unlisted !== 'known' && (!group.isListed || differences.sources.length > 0)) {
        unlisted = 'asked for'
        return 0
      }
      for (const { error, isNamed } of differences.unreadable) {
        if (onDifference === undefined || !isNamed) unreadable.push(error)
      }
      if (run.writes) isWritten = (await applyGroup(trx, group, differences, now)) || isWritten
      else noteCompared(group, differences)
      noteReadings(environment, differences)
      for (const id of group.doubted) noteConcerned(run, environment, 'paymentIds', id)
      const changed = new Set(differences.readings.flatMap((one) => (one.isOther ? [one.row.seq] : [])))
      for (const event of group.events) {
        count(event, changed)
        noteDone(run, event.row.seq)
      }
      events += group.events.length
      return group.events.length
    },
    ask: (trx, told) => {
      const isOfTrial = (glimpse: EventGlimpse) => isTrial && glimpse.seq <= newest
      return askNext(trx, told, GLIMPSES_AT_ONCE, isOfTrial, async (rows) => {
        const read = await readRows(trx, told.environment, isTrial ? rows : [])
        return rows.flatMap((row): NormalizedEvent[] => {
          const again = read.get(row.seq)
          if (again?.kind === 'read') return again.normalized.ok ? [again.normalized.event] : []
          return readableForm(row)
        })
      })
    },
    async settlePeople(trx, { environment }, people) {
      const told = new Map([...people].map(([id, person]) => [id, toldOf(person)]))
      if (run.writes) return replacePeople(trx, environment, told)
      for (const [customerId, { record }] of isTrial ? told : []) {
        const { communityId, messengerId } = record?.facts ?? {}
        const accounts = { communityId: communityId?.value ?? null, messengerId: messengerId?.value ?? null }
        const name = `${environment} ${customerId}`
        const { activeProducts } = ahead.get(name) ?? { activeProducts: null }
        ahead.set(name, { environment, customerId, activeProducts, accounts })
      }
    },
    async saveIfDue(trx, eventsPerSave = Number.POSITIVE_INFINITY) {
      if (!isWritten && events < eventsPerSave) return
      await saveRun(trx, run)
      isWritten = false
      events = 0
    },
    asksForUnlisted: () => unlisted === 'asked for',
    noteUnlisted(places) {
      unlisted = 'known'
      for (const { seq, environment, ...place } of places) {
        const key = keyIn(place)
        if (key !== null) leadTo(environment, sourceNode(key), seq)
      }
    },
    differences: function* () {
      for (const changes of accessOf.values()) yield* changes
    },
    customersAhead: () => [...ahead.values()],
    assertReadable() {
      const [first] = unreadable
      if (first !== undefined) throw first
    },
  }
}

function readableForm({ normalized }: GroupRow): NormalizedEvent[] {
  const event = normalized === null ? null : eventInFormIfReadable(normalized)
  return event === null ? [] : [event]
}

function paymentIn(event: NormalizedEvent | null): string | null {
  return event?.subject === 'payment' || event?.subject === 'subscription' ? event.paymentId : null
}

/** What became of one event that was meant to be read again. */
function countsOf({ row, again }: GroupEvent, isChanged: boolean): Partial<ReplayCounts> {
  switch (again?.kind) {
    case 'read': {
      const isUsable = again.normalized.ok
      return {
        read: 1,
        changed: isChanged ? 1 : 0,
        recovered: isChanged && isUsable && row.disposition === 'quarantined' ? 1 : 0,
        quarantined: isUsable ? 0 : 1,
      }
    }
    case 'duplicate':
      return { duplicates: 1 }
    case 'skipped':
    case 'notReplayable':
    case 'altered':
      return { [again.kind]: 1 }
    default:
      return {}
  }
}

function added(counts: ReplayCounts, more: Partial<ReplayCounts>): ReplayCounts {
  const names = Object.keys(counts) as (keyof ReplayCounts)[]
  return Object.fromEntries(
    names.map((name) => [name, counts[name] + (more[name] ?? 0)]),
  ) as unknown as ReplayCounts
}

/** What has changed since a job began, in all of its runs, each entitlement once: before and after. */
async function accessReport(
  db: Kysely<Database>,
  { job, writes }: Run,
  settling: Settling,
  sampleSize: number,
): Promise<RecomputeReport['access']> {
  const found = writes ? await changesSince(db, job.changesAfter) : [...settling.differences()]
  const of = (environment: Environment) =>
    summaryOf(
      found.filter((one) => one.environment === environment),
      sampleSize,
    )
  return { all: summaryOf(found, sampleSize), live: of('live'), sandbox: of('sandbox') }
}

async function changesSince(
  db: Kysely<Database>,
  changesAfter: number,
): Promise<readonly AccessDifference[]> {
  const found = new Map<string, AccessDifference>()
  let after: number | undefined = changesAfter
  while (after !== undefined) {
    const changes = await loadAllChanges(db, after, CHANGES_AT_ONCE)
    for (const { environment, customerId, productId, cause, ...change } of changes) {
      if (cause.kind !== 'rebuild') continue
      const name = JSON.stringify([environment, customerId, productId])
      const before = found.get(name)?.before ?? change.before
      found.set(name, { environment, customerId, productId, before, after: change.after })
    }
    after = changes.at(-1)?.cursor
  }
  return [...found.values()].filter(({ before, after: is }) => isChange(before, is))
}
