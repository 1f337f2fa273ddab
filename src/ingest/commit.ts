import type { Policy } from '../entitlements/policy.js'
import { sourceKey } from '../entitlements/source-of.js'
import type { Environment, ManualEvent, Normalized } from '../provider/event.js'
import { redact } from '../provider/redact.js'
import { pipelined } from '../store/bulk.js'
import { loadForms, saveCustomerFacts } from '../store/customers.js'
import { recordArrivals } from '../store/deliveries.js'
import {
  type ErasedIds,
  type ErasureAct,
  loadErasedIds,
  reopenErasures,
  saveErasures,
} from '../store/erasures.js'
import {
  insertEvents,
  loadManualEvent,
  loadStoredIds,
  type NewEvent,
  nextSeq,
  recordDuplicates,
} from '../store/events.js'
import type { Db, Tx } from '../store/schema.js'
import type { Incoming, Receipt } from './delivery.js'
import { type FoldedBatch, foldBatch } from './fold-batch.js'
import { dateActs, ownIdOf, type PreparedDelivery, prepare } from './prepare.js'
import { type Remark, remarksOn, type WrittenDelivery } from './remarks.js'
import { saveAccess, type TouchedCustomers, whoIsTouched } from './settle.js'

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
 * One transaction per batch: events, sources, entitlements and changes together, so that a committed event
 * is visible in every answer.
 */
export function createBatchWriter(deps: BatchWriterDeps): WriteBatch {
  const { db, policy, clock, recordErasures, isAlone = false } = deps
  /** Cached if nobody else erases; null: not loaded, or outdated. */
  let erased: ErasedIds | null = null
  const seenVersions = new Set<string>()

  return async (deliveries) => {
    const read = deliveries.map((one) => ('undated' in one ? one : prepare(one)))
    const environments = new Set(deliveries.map(({ environment }) => environment))
    return db.transaction().execute(async (trx) => {
      const written = new Map<PreparedDelivery, WrittenDelivery>()
      const touched: TouchedCustomers[] = []
      const dated = await dateActs(trx, read, clock())
      const acts = await newErasures(trx, dated)
      const [inForce, known] = await pipelined([policy(trx), erased ?? loadErasedIds(trx)])
      erased = acts.length === 0 && isAlone ? known : null
      const prepared = redactErased(dated, known, acts, clock())
      for (const environment of environments) {
        const own = prepared.filter((one) => one.environment === environment)
        const { deliveries, customerIds } = await write(trx, environment, own, inForce, known)
        for (const result of deliveries) written.set(result.prepared, result)
        touched.push({ environment, customerIds })
      }
      await saveErasures(trx, acts)
      if (acts.length > 0) recordErasures?.(acts)
      const results = prepared.map((one) => written.get(one) as WrittenDelivery)
      return {
        receipts: results.map(({ prepared, disposition }) => ({
          id: ownIdOf(prepared.normalized),
          disposition,
        })),
        remarks: results.flatMap((one) => remarksOn(one, seenVersions)),
        touched,
      }
    })
  }

  async function write(
    trx: Tx,
    environment: Environment,
    prepared: readonly PreparedDelivery[],
    inForce: Policy,
    known: ErasedIds,
  ): Promise<{ deliveries: WrittenDelivery[]; customerIds: readonly string[] }> {
    const [{ fresh, repeated }, first] = await pipelined([separate(trx, environment, prepared), nextSeq(trx)])
    const numbered = fresh.flatMap(({ normalized }, i) =>
      normalized.ok ? [{ seq: first + i, event: normalized.event }] : [],
    )
    const folded = await foldBatch(trx, environment, numbered, inForce)
    const now = clock()
    const ownerOf = ownersIn(folded)
    const kept = redactOwned(fresh, ownerOf, known, now)
    await reopenErasures(trx, environment, erasedWithMore(folded, known.get(environment) ?? NOBODY))
    const events = kept.flatMap(({ normalized }) => (normalized.ok ? [normalized.event] : []))
    const rows = kept.map((one) => toNewEvent(one, folded))
    // Stored events whose source now belongs to another customer.
    const seqs = folded.changes.flatMap((change) => change.strangers)
    const [strangers] = await pipelined([
      loadForms(trx, seqs),
      insertEvents(trx, rows, first),
      recordArrivals(trx, fresh),
    ])
    const again = await withoutSameActs(trx, environment, repeated)
    const conflicts = new Set(await recordDuplicates(trx, again))
    const { accessOf, answersOf, causeOf } = whoIsTouched(folded.changes, events, now)
    await pipelined([
      saveCustomerFacts(trx, environment, [
        ...events.map((event) => ({ event, isOfOwnSource: ownerOf(event.id) === event.customerId })),
        ...strangers.map((event) => ({ event, isOfOwnSource: false })),
      ]),
      saveAccess(trx, environment, accessOf, now, causeOf),
    ])
    const deliveries = [
      ...fresh.map((prepared, i) => {
        return { prepared, disposition: rows[i]?.disposition ?? 'quarantined', isConflict: false } as const
      }),
      ...repeated.map((prepared) => {
        return { prepared, disposition: 'duplicate', isConflict: conflicts.has(prepared) } as const
      }),
    ]
    return { deliveries, customerIds: answersOf }
  }
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
async function separate(trx: Tx, environment: Environment, prepared: readonly PreparedDelivery[]) {
  const eventIds = prepared.map(({ eventId }) => eventId)
  const seen = new Set(await loadStoredIds(trx, environment, eventIds))
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
async function newErasures(trx: Tx, dated: readonly PreparedDelivery[]): Promise<readonly ErasureAct[]> {
  const erasureIn = ({ normalized }: PreparedDelivery) => {
    const act = actIn(normalized)
    return act?.type === 'manual.erased' ? act : null
  }
  const acts: ErasureAct[] = []
  for (const [environment, own] of Map.groupBy(dated, (one) => one.environment)) {
    if (own.every((one) => erasureIn(one) === null)) continue
    const { fresh } = await separate(trx, environment, own)
    acts.push(...fresh.flatMap((one) => erasureIn(one) ?? []).map((act) => ({ ...act, environment })))
  }
  return acts
}

/** A provider's event may have any type: changes by hand are recognised by their subject. */
function actIn(normalized: Normalized): ManualEvent | null {
  return normalized.ok && normalized.event.subject === 'manual' ? normalized.event : null
}

/**
 * Leaves out repeats of what Latchkey wrote itself. They are the same event, though the bodies differ: those of changes
 * by hand in their instants, those of reports in what else the record showed when it was read.
 */
async function withoutSameActs(trx: Tx, environment: Environment, repeated: readonly PreparedDelivery[]) {
  const others: PreparedDelivery[] = []
  for (const one of repeated) {
    if (one.headers === 'reported') continue
    const act = actIn(one.normalized)
    const stored = act && (await loadManualEvent(trx, environment, act.id))
    const isSame = SAME_IN_AN_ACT.every((name) => stored?.[name] === act?.[name])
    if (act === null || !isSame) others.push(one)
  }
  return others
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
  erased: ErasedIds,
  now: number,
): readonly PreparedDelivery[] {
  if (erased.size === 0) return deliveries
  return deliveries.map((one) => {
    if (!one.normalized.ok || one.normalized.event.customerId !== null) return one
    const owner = ownerOf(one.normalized.event.id) ?? null
    return owner === null ? one : withoutErased(one, erased.get(one.environment) ?? NOBODY, now, owner)
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
