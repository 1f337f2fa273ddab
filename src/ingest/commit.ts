import { unpackHistory } from '../entitlements/history.js'
import type { Policy } from '../entitlements/policy.js'
import { sourceKey } from '../entitlements/source-of.js'
import type { Environment, ManualEvent, Normalized, NormalizedEvent } from '../provider/event.js'
import { compareText } from '../provider/order.js'
import { redact } from '../provider/redact.js'
import { pipelined } from '../store/bulk.js'
import { learnFacts, saveFacts } from '../store/customers.js'
import { loadPaces, recordArrivals } from '../store/deliveries.js'
import { alone, beside, engineOf, hasMetAnother } from '../store/engine.js'
import {
  countErased,
  type ErasedIds,
  type ErasureAct,
  loadErasedIds,
  reopenErasures,
  saveErasures,
} from '../store/erasures.js'
import { insertEvents, type NewEvent, nextSeqs, recordDuplicates } from '../store/events.js'
import type { Db, Tx } from '../store/schema.js'
import { type Concerns, concernsOf, isErasure, isOf, locksOfAll } from './concerns.js'
import type { Incoming, ManualAct, Receipt } from './delivery.js'
import { type FoldedBatch, foldBatch, saveFolded } from './fold-batch.js'
import { createKnown, type Known } from './known.js'
import { ALONE, createLocks, LOCKS_AT_MOST, type Lock, lockName, NotLockedError } from './locks.js'
import { dateActs, ownIdOf, type PreparedDelivery, prepare } from './prepare.js'
import { type Remark, remarksOn, type WrittenDelivery } from './remarks.js'
import {
  type AccessInputs,
  accessDifferences,
  type TouchedCustomers,
  whoIsTouched,
  writeAccess,
} from './settle.js'

export interface WrittenBatch {
  /** In the order of the deliveries. */
  readonly receipts: readonly Receipt[]
  readonly remarks: readonly Remark[]
  readonly touched: readonly TouchedCustomers[]
}

/** Commits a batch whole or not at all. */
export type WriteBatch = (deliveries: readonly Incoming[]) => Promise<WrittenBatch>

export interface BatchWriterDeps {
  readonly db: Db
  /** Read in the transaction of each batch: a rebuild may have changed it since the last one. */
  readonly policy: (trx: Tx) => Policy | Promise<Policy>
  readonly clock: () => number
  /** Called with erasures before they are committed, once their dates are known. If omitted, they are not listed. */
  readonly recordErasures?: (acts: readonly ErasureAct[]) => void
  /** Whether no other process writes to the store, so that what was read of it once still holds. */
  readonly isAlone?: boolean
}

/**
 * One transaction per batch: events, sources, entitlements and changes together, so that a committed event is visible in
 * every answer. Everything is read before anything is written: what is read decides what is written.
 */
export function createBatchWriter(deps: BatchWriterDeps): WriteBatch {
  const { db, policy, clock, recordErasures, isAlone = false } = deps
  /** Those that were read last, and how many there were. Nobody is ever taken off, so as many are the same. */
  let erased: { readonly count: number; readonly ids: ErasedIds } | null = null
  const seenVersions = new Set<string>()

  return async (deliveries) => {
    const read = deliveries.map((one) => ('undated' in one ? one : prepare(one)))
    const { written, touched } = await commit(read)
    return {
      receipts: written.map(({ prepared, disposition }) => ({
        id: ownIdOf(prepared.normalized),
        disposition,
      })),
      remarks: written.flatMap((one) => remarksOn(one, seenVersions)),
      touched,
    }
  }

  /**
   * Beside other transactions, with all that the deliveries name locked. Where more turns out to be concerned, it begins
   * again with all of it: whoever locks something late may wait for somebody who waits for them.
   */
  async function commit(read: readonly Read[]) {
    let held = locksOfAll(read)
    const mustBeAlone = read.some(isErasure)
    for (let attempt = 1; !mustBeAlone && attempt <= ATTEMPTS && held.size <= LOCKS_AT_MOST; attempt += 1) {
      try {
        return await beside(db, (trx) => write(trx, read, held))
      } catch (error) {
        if (error instanceof NotLockedError)
          held = new Map([...held, ...error.missing.map((lock) => [lockName(lock), lock] as const)])
        else if (!hasMetAnother(error)) throw error
      }
    }
    return alone(db, (trx) => write(trx, read, null))
  }

  async function loadErased(trx: Tx): Promise<ErasedIds> {
    if (erased !== null && isAlone) return erased.ids
    const count = await countErased(trx)
    if (erased?.count === count) return erased.ids
    const ids = await loadErasedIds(trx)
    erased = { count, ids }
    return ids
  }

  /** @param held null: no other transaction writes */
  async function write(trx: Tx, read: readonly Read[], held: ReadonlyMap<string, Lock> | null) {
    const locks = held === null ? null : createLocks(held)
    const more = [...(held?.values() ?? [])]
    const parts = new Map(
      [...Map.groupBy(read, ({ environment }) => environment)].map(([environment, own]) => [
        environment,
        {
          known: createKnown(trx, environment, locks ?? ALONE),
          concerns: concernsOf(own, more.filter(isOf(environment))),
        },
      ]),
    )
    // The numbers come last: with them the transaction has its place among others, after those that it waited for.
    const [, inForce, known, paces, , numbers] = await pipelined([
      engineOf(trx).lock(trx, [...(held?.keys() ?? [])]),
      policy(trx),
      loadErased(trx),
      loadPaces(trx),
      engineOf(trx).isRemote ? pipelined([...parts.values()].map(readAhead)) : [],
      nextSeqs(trx, read.length),
    ])
    const deciding = decideAll(read, { parts, policy: inForce, erased: known, numbers, clock })
    // What others may be changing decides nothing, not even an error.
    await Promise.allSettled([deciding])
    locks?.assertHeld()
    const { prepared, acts, decisions } = await deciding
    for (const decision of decisions) await save(trx, decision)
    await saveErasures(trx, acts)
    await recordArrivals(
      trx,
      decisions.flatMap((one) => one.fresh),
      paces,
    )
    if (acts.length > 0) recordErasures?.(acts)
    if (acts.length > 0) erased = null
    const results = new Map(
      decisions.flatMap(({ deliveries }) => deliveries.map((one) => [one.prepared, one])),
    )
    return {
      written: prepared.map((one) => results.get(one) as WrittenDelivery),
      touched: decisions.map(({ environment, answersOf }) => ({ environment, customerIds: answersOf })),
    }
  }
}

type Read = PreparedDelivery | ManualAct

/** After so many, a transaction waits until it is alone. */
const ATTEMPTS = 5

/** What decides a whole batch. */
interface Whole {
  readonly parts: ReadonlyMap<Environment, Part>
  readonly policy: Policy
  readonly erased: ErasedIds
  readonly numbers: readonly number[]
  readonly clock: () => number
}

/** Writes nothing. */
async function decideAll(read: readonly Read[], { parts, policy, erased, numbers, clock }: Whole) {
  const knownOf = (environment: Environment) => (parts.get(environment) as Part).known
  const dated = await dateActs(read, knownOf, clock())
  const acts = await newErasures(knownOf, dated)
  const prepared = redactErased(dated, erased, acts, clock())
  const left = numbers.values()
  const decisions: Decision[] = []
  for (const [environment, { known }] of parts) {
    const theirs = prepared.filter((one) => one.environment === environment)
    const erasedHere = erased.get(environment) ?? NOBODY
    decisions.push(
      await decide(known, { prepared: theirs, numbers: left, policy, erased: erasedHere, now: clock() }),
    )
  }
  return { prepared, acts, decisions }
}

/** The deliveries of one environment. */
interface Part {
  readonly known: Known
  readonly concerns: Concerns
}

/** Asks in one go for what most batches need. */
async function readAhead({ known, concerns: { eventIds, payments, sources, customers } }: Part) {
  await pipelined([
    known.hashes(eventIds),
    known.links(payments),
    known.sources(sources),
    known.customers(customers),
    known.sourcesOf(customers),
    known.acts(customers),
    known.entitlements(customers),
  ])
}

interface Batch {
  readonly prepared: readonly PreparedDelivery[]
  /** For the new events, rising. */
  readonly numbers: Iterator<number>
  readonly policy: Policy
  readonly erased: ReadonlySet<string>
  readonly now: number
}

/** Everything that a batch changes in one environment. */
type Decision = Awaited<ReturnType<typeof decide>>

async function decide(known: Known, { prepared, numbers, policy, erased, now }: Batch) {
  const { environment } = known
  const stored = await known.hashes(prepared.map(({ eventId }) => eventId))
  const { fresh, repeated } = separate(stored, prepared)
  const seqs = fresh.map(() => numbers.next().value as number)
  const numbered = fresh.flatMap(({ normalized }, i) =>
    normalized.ok ? [{ seq: seqs[i] as number, event: normalized.event }] : [],
  )
  const folded = await foldBatch(known, numbered, policy)
  const ownerOf = ownersIn(folded)
  const kept = redactOwned(fresh, ownerOf, erased, now)
  const events = kept.flatMap(({ normalized }) => (normalized.ok ? [normalized.event] : []))
  const eventOf = new Map(
    kept.flatMap(({ normalized }, i) => (normalized.ok ? [[seqs[i], normalized.event]] : [])),
  )
  const rows = kept.map((one) => toNewEvent(one, folded))
  const again = await withoutSameActs(known, repeated, events)
  const hashes = new Map([
    ...stored,
    ...fresh.map(({ eventId, bodySha256 }) => [eventId, bodySha256] as const),
  ])
  const conflicts = again.filter((one) => hashes.get(one.eventId) !== one.bodySha256)
  const others = new Set(conflicts)
  // Stored events whose source now belongs to another customer.
  const strangers = await known.forms(folded.changes.flatMap((change) => change.strangers))
  const facts = await learnFacts(
    environment,
    [
      ...events.map((event) => ({ event, isOfOwnSource: ownerOf(event.id) === event.customerId })),
      ...[...strangers.values()].map((event) => ({ event, isOfOwnSource: false })),
    ],
    known.customers,
    (customerId, since) => ownEvents(known, folded, eventOf, customerId, since),
  )
  const { accessOf, answersOf, causeOf } = whoIsTouched(folded.changes, events, now)
  const differences = accessDifferences(accessOf, await accessInputs(known, folded, events, accessOf), now)
  return {
    environment,
    folded,
    fresh,
    rows,
    seqs,
    reopened: erasedWithMore(folded, erased),
    again,
    conflicts,
    facts,
    differences,
    causeOf,
    now,
    answersOf,
    deliveries: [
      ...rows.map(({ disposition }, i): WrittenDelivery => {
        return { prepared: fresh[i] as PreparedDelivery, disposition, isConflict: false }
      }),
      ...repeated.map((prepared): WrittenDelivery => {
        return { prepared, disposition: 'duplicate', isConflict: others.has(prepared) }
      }),
    ],
  }
}

async function save(trx: Tx, decision: Decision): Promise<void> {
  const { environment, folded, rows, seqs, reopened, again, conflicts, facts, differences, now, causeOf } =
    decision
  await pipelined([
    saveFolded(trx, environment, folded),
    reopenErasures(trx, environment, reopened),
    insertEvents(trx, rows, seqs),
    recordDuplicates(trx, again, conflicts),
    saveFacts(trx, environment, facts),
    writeAccess(trx, environment, differences, now, causeOf),
  ])
}

/** What the access of these customers follows from once the batch is stored. */
async function accessInputs(
  known: Known,
  { changes }: FoldedBatch,
  events: readonly NormalizedEvent[],
  customerIds: readonly string[],
): Promise<AccessInputs> {
  const [sources, acts, entitlements] = await pipelined([
    known.sourcesOf(customerIds),
    known.acts(customerIds),
    known.entitlements(customerIds),
  ])
  const touched = new Set(changes.map(({ key }) => sourceKey(key)))
  const after = changes.flatMap((change) => change.after ?? [])
  const byHand = events.filter((event) => event.subject === 'manual')
  const own = (customerId: string) => {
    const states = (sources.get(customerId) ?? []).filter((state) => !touched.has(sourceKey(state)))
    states.push(...after.filter((state) => state.customerId === customerId))
    return states.sort((a, b) => compareText(a.kind, b.kind) || compareText(a.id, b.id))
  }
  const actsOn = (customerId: string) => [
    ...(acts.get(customerId) ?? []),
    ...byHand.filter((event) => event.customerId === customerId),
  ]
  return {
    sources: new Map(customerIds.map((id) => [id, own(id)])),
    acts: new Map(customerIds.map((id) => [id, actsOn(id)])),
    entitlements,
  }
}

/** The events that name a customer, from the customer's own sources once the batch is stored, from an instant on. */
async function ownEvents(
  known: Known,
  { kept, changes }: FoldedBatch,
  fresh: ReadonlyMap<number | undefined, NormalizedEvent>,
  customerId: string,
  since: number,
): Promise<readonly NormalizedEvent[]> {
  const touched = new Set(changes.map(({ key }) => sourceKey(key)))
  const stored = await known.historiesOf(customerId)
  const histories = [
    ...stored.filter(({ kind, source_id: id }) => !touched.has(sourceKey({ kind, id }))),
    ...kept.filter(({ state }) => state.customerId === customerId),
  ]
  const seqs = histories
    .flatMap(({ history }) => unpackHistory(history) ?? [])
    .filter((event) => event.customerId === customerId && event.createdAt >= since)
    .map(({ seq }) => seq)
  const forms = await known.forms(seqs.filter((seq) => !fresh.has(seq)))
  const events = [...forms.values(), ...seqs.flatMap((seq) => fresh.get(seq) ?? [])]
  return events.filter((event) => event.customerId === customerId)
}

/** The owner of each event's source, by event id; null if unknown, undefined if the event belongs to no source. */
function ownersIn({ sources, changes }: FoldedBatch): (eventId: string) => string | null | undefined {
  const owners = new Map(changes.map(({ key, after }) => [sourceKey(key), after?.customerId ?? null]))
  return (eventId) => {
    const source = sources.get(eventId) ?? null
    return source === null ? undefined : owners.get(sourceKey(source))
  }
}

/** Separates new events from stored and repeated ones; of repeated ones in a batch, the first counts. */
function separate(stored: ReadonlyMap<string, string>, prepared: readonly PreparedDelivery[]) {
  const seen = new Set(stored.keys())
  const fresh: PreparedDelivery[] = []
  const repeated: PreparedDelivery[] = []
  for (const one of prepared) {
    if (seen.has(one.eventId)) repeated.push(one)
    else fresh.push(one)
    seen.add(one.eventId)
  }
  return { fresh, repeated }
}

/** The erasures that this batch stores: of changes with one id, the first counts. */
async function newErasures(
  knownOf: (environment: Environment) => Known,
  dated: readonly PreparedDelivery[],
): Promise<readonly ErasureAct[]> {
  const acts: ErasureAct[] = []
  for (const [environment, own] of Map.groupBy(dated, (one) => one.environment)) {
    if (own.every((one) => erasureIn(one) === null)) continue
    const { fresh } = separate(await knownOf(environment).hashes(own.map(({ eventId }) => eventId)), own)
    acts.push(...fresh.flatMap((one) => erasureIn(one) ?? []).map((act) => ({ ...act, environment })))
  }
  return acts
}

function erasureIn({ normalized }: PreparedDelivery): ManualEvent | null {
  const act = actIn(normalized)
  return act?.type === 'manual.erased' ? act : null
}

/** A provider's event may have any type: changes by hand are recognised by their subject. */
function actIn(normalized: Normalized): ManualEvent | null {
  return normalized.ok && normalized.event.subject === 'manual' ? normalized.event : null
}

/**
 * Leaves out repeats of what Latchkey wrote itself. They are the same event, though the bodies differ: those of changes
 * by hand in their instants, those of reports in what else the record showed when it was read.
 * @param fresh the new events of the batch
 */
async function withoutSameActs(
  known: Known,
  repeated: readonly PreparedDelivery[],
  fresh: readonly NormalizedEvent[],
): Promise<readonly PreparedDelivery[]> {
  const others: PreparedDelivery[] = []
  for (const one of repeated) {
    if (one.headers === 'reported') continue
    const act = actIn(one.normalized)
    const isSame = act !== null && (await isDone(known, act, fresh))
    if (!isSame) others.push(one)
  }
  return others
}

async function isDone(known: Known, act: ManualEvent, fresh: readonly NormalizedEvent[]): Promise<boolean> {
  const { customerId, id } = act
  const stored = (await known.acts([customerId])).get(customerId) ?? []
  const done = [...stored, ...fresh].find((event) => event.subject === 'manual' && event.id === id)
  return (
    done !== undefined &&
    SAME_IN_AN_ACT.every((name) => name in done && done[name as keyof typeof done] === act[name])
  )
}

/** An erasure removes all else. */
const SAME_IN_AN_ACT = ['type', 'customerId', 'productId', 'until'] as const

function toNewEvent({ normalized, ...delivered }: PreparedDelivery, folded: FoldedBatch): NewEvent {
  if (!normalized.ok) {
    return { ...delivered, disposition: 'quarantined', reason: normalized.reason, event: null, source: null }
  }
  const { event } = normalized
  const outcome = folded.outcomes.get(event.id) ?? { disposition: 'ignored', reason: null }
  return { ...delivered, ...outcome, event, source: folded.sources.get(event.id) ?? null }
}

/**
 * Removes the data of erased people from deliveries, before anything is stored. The hash stays that of the original,
 * so that a repeated delivery is recognised.
 * @param acts erasures in the same batch
 */
function redactErased(
  deliveries: readonly PreparedDelivery[],
  erased: ErasedIds,
  acts: readonly ErasureAct[],
  now: number,
): readonly PreparedDelivery[] {
  if (erased.size === 0 && acts.length === 0) return deliveries
  const ids = new Map(erased)
  for (const { environment, customerId } of acts) {
    ids.set(environment, new Set(ids.get(environment)).add(customerId))
  }
  return deliveries.map((one) => withoutErased(one, ids.get(one.environment) ?? NOBODY, now))
}

/** The same for new deliveries that name nobody, once the owners of their sources are known. */
function redactOwned(
  deliveries: readonly PreparedDelivery[],
  ownerOf: (eventId: string) => string | null | undefined,
  erased: ReadonlySet<string>,
  now: number,
): readonly PreparedDelivery[] {
  if (erased.size === 0) return deliveries
  return deliveries.map((one) => {
    if (!one.normalized.ok || one.normalized.event.customerId !== null) return one
    const owner = ownerOf(one.normalized.event.id) ?? null
    return owner === null ? one : withoutErased(one, erased, now, owner)
  })
}

const NOBODY: ReadonlySet<string> = new Set()

/** Erased customers to whom stored events now turn out to belong: those still hold personal data. */
function erasedWithMore({ changes }: FoldedBatch, erased: ReadonlySet<string>): readonly string[] {
  return changes.flatMap(({ after, hasGained }) => {
    const customerId = after?.customerId ?? null
    return hasGained && customerId !== null && erased.has(customerId) ? [customerId] : []
  })
}

function withoutErased(
  delivery: PreparedDelivery,
  erased: ReadonlySet<string>,
  now: number,
  owner: string | null = null,
): PreparedDelivery {
  const { normalized, body, removed } = delivery
  const event = normalized.ok ? normalized.event : null
  const left = redact({ event, owner, body }, erased)
  if (left === null) return delivery
  return {
    ...delivery,
    normalized: left.event === null ? normalized : { ok: true, event: left.event },
    body: left.body,
    ...(left.removed !== null && {
      removed: { why: left.removed, at: now, bytes: removed?.bytes ?? body?.byteLength ?? 0 },
    }),
  }
}
