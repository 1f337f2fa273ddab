/* What follows from a batch, decided from what is known: nothing is written here. */

import { unpackHistory } from '../entitlements/history.js'
import type { Policy } from '../entitlements/policy.js'
import { sourceKey } from '../entitlements/source-of.js'
import type { Environment, NormalizedEvent } from '../provider/event.js'
import { compareText } from '../provider/order.js'
import { pipelined } from '../store/bulk.js'
import { learnFacts } from '../store/customers.js'
import type { ErasedIds } from '../store/erasures.js'
import type { NewEvent } from '../store/events.js'
import type { ManualAct } from './delivery.js'
import { erasedWithMore, NOBODY, newErasures, redactErased, redactOwned } from './erased.js'
import { type FoldedBatch, foldBatch } from './fold-batch.js'
import type { Known } from './known.js'
import { dateActs, type PreparedDelivery } from './prepare.js'
import type { WrittenDelivery } from './remarks.js'
import { separate, withoutSameActs } from './repeats.js'
import { type AccessInputs, accessDifferences, whoIsTouched } from './settle.js'

export type Read = PreparedDelivery | ManualAct

/** What decides a whole batch. */
interface Whole {
  readonly parts: ReadonlyMap<Environment, { readonly known: Known }>
  readonly policy: Policy
  readonly erased: ErasedIds
  readonly numbers: readonly number[]
  readonly clock: () => number
}

/** Each environment by itself, after what concerns all of them. */
export async function decideAll(read: readonly Read[], { parts, policy, erased, numbers, clock }: Whole) {
  const knownOf = (environment: Environment) => (parts.get(environment) as { known: Known }).known
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

interface Batch {
  readonly prepared: readonly PreparedDelivery[]
  /** For the new events, rising. */
  readonly numbers: Iterator<number>
  readonly policy: Policy
  readonly erased: ReadonlySet<string>
  readonly now: number
}

/** Everything that a batch changes in one environment. */
export type Decision = Awaited<ReturnType<typeof decide>>

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

function toNewEvent({ normalized, ...delivered }: PreparedDelivery, folded: FoldedBatch): NewEvent {
  if (!normalized.ok) {
    return { ...delivered, disposition: 'quarantined', reason: normalized.reason, event: null, source: null }
  }
  const { event } = normalized
  const outcome = folded.outcomes.get(event.id) ?? { disposition: 'ignored', reason: null }
  return { ...delivered, ...outcome, event, source: folded.sources.get(event.id) ?? null }
}
