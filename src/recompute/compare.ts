import type { Transaction } from 'kysely'
import type { DerivedSource } from '../entitlements/derive.js'
import type { SourceKey, SourceState } from '../entitlements/model.js'
import { compareText } from '../entitlements/order.js'
import { type PaymentLink, sourceKey } from '../entitlements/source-of.js'
import { isLatchkeyError, type LatchkeyError } from '../errors.js'
import { accessFrom, differencesOf, isChange, NEVER_GRANTED, snapshot } from '../ingest/settle.js'
import type { Environment } from '../provider/event.js'
import { type EntitlementRecord, loadEntitlements } from '../store/entitlements.js'
import type { EventReading } from '../store/event-reading.js'
import { keyOfSource, type MovedEvent } from '../store/group-rows.js'
import { type ActsOnCustomer, loadActsOn, NO_ACTS } from '../store/manual-events.js'
import { hasSameForm } from '../store/replayed-events.js'
import type { Database } from '../store/schema.js'
import { type StateRow, sourceColumns, stateOf } from '../store/sources.js'
import { type Group, type GroupEvent, isSameLink, keyIn } from './group.js'
import type { EventReadAgain } from './read-again.js'
import type { AccessDifference, StateDifference } from './report.js'

/** Where what is stored of a group is not what its events say. */
export interface GroupDifferences {
  /** Events whose bodies say something else than is stored of them. */
  readonly readings: readonly ChangedReading[]
  /** Events that belong elsewhere, or of which something else became. */
  readonly moved: readonly (MovedEvent & { readonly stored: GroupEvent })[]
  /** The numbers of events whose reading has changed, beside what has become of them with others. */
  readonly changed: ReadonlySet<number>
  readonly links: readonly PaymentLink[]
  /** Payments that nothing links. */
  readonly unlinked: readonly string[]
  readonly sources: readonly { readonly key: SourceKey; readonly folded: DerivedSource | null }[]
  /** By customer: of those whose sources and acts can be read. */
  readonly access: ReadonlyMap<string, CustomerAccess>
  /** What was done by hand and can't be read. */
  readonly unreadableActs: readonly LatchkeyError[]
}

export interface ChangedReading {
  readonly row: EventReadAgain['row']
  readonly reading: EventReading
  readonly stored: GroupEvent
}

/** What is written down of a customer, and what follows from the group. */
export interface CustomerAccess {
  readonly stored: readonly EntitlementRecord[]
  /** Under the stored sources, as of now; null: one can't be read. */
  readonly before: readonly EntitlementRecord[] | null
  readonly after: readonly EntitlementRecord[]
}

/** Compares what is stored of a group with what its events come to. Changes nothing. */
export async function compareGroup(
  trx: Transaction<Database>,
  group: Group,
  now: number,
): Promise<GroupDifferences> {
  const { links, derived } = group
  return {
    ...eventDifferences(group),
    links: [...derived.links.values()].filter((link) => !isSameLink(link, links.get(link.paymentId))),
    unlinked: [...links.keys()].filter((paymentId) => !derived.links.has(paymentId)),
    sources: sourceDifferences(group),
    ...(await accessOf(trx, group, now)),
  }
}

function eventDifferences({
  events,
  derived,
  frozen,
}: Group): Pick<GroupDifferences, 'readings' | 'moved' | 'changed'> {
  const readings: ChangedReading[] = []
  const moved: (MovedEvent & { stored: GroupEvent })[] = []
  const changed = new Set<number>()
  const isFrozen = (key: SourceKey | null) => frozen.size > 0 && key !== null && frozen.has(sourceKey(key))
  for (const stored of events) {
    const { row, after, again } = stored
    const source = derived.places.get(row.seq) ?? null
    const outcome =
      again?.kind === 'read' && !again.normalized.ok
        ? { disposition: 'quarantined' as const, reason: again.normalized.reason }
        : derived.outcomes.get(row.seq)
    if (outcome === undefined || isFrozen(keyIn(row)) || isFrozen(source)) continue
    const isElsewhere = row.source_kind !== (source?.kind ?? null) || row.source_id !== (source?.id ?? null)
    const isOther = row.disposition !== outcome.disposition || row.reason !== outcome.reason
    if (isElsewhere || isOther) moved.push({ seq: row.seq, source, ...outcome, stored })
    if (again?.kind !== 'read') continue
    const reading = { eventId: again.eventId, event: after, source, ...outcome }
    const hasOtherForm = !hasSameForm(again.row, reading)
    if (hasOtherForm) readings.push({ row: again.row, reading, stored })
    // What waits with its source, folding decides.
    const isFolded = source !== null && row.disposition !== 'quarantined'
    if (hasOtherForm || isElsewhere || (isOther && !isFolded)) changed.add(row.seq)
  }
  return { readings, moved, changed }
}

/** State and history as text, since text is what is stored: the same events and policy always give the same. */
function sourceDifferences({ derived, sources, frozen }: Group): GroupDifferences['sources'] {
  const found: { key: SourceKey; folded: DerivedSource | null }[] = []
  for (const [name, folded] of derived.sources) {
    const row = sources.get(name)
    const is = sourceColumns(folded)
    const isSame =
      row?.state === is.state &&
      row.history === is.history &&
      row.customer_id === is.customer_id &&
      row.newest_at === is.newest_at
    if (!isSame && !frozen.has(name)) {
      found.push({ key: { kind: folded.state.kind, id: folded.state.id }, folded })
    }
  }
  for (const [name, row] of sources) {
    if (!frozen.has(name) && !derived.sources.has(name)) found.push({ key: keyOfSource(row), folded: null })
  }
  return found
}

async function accessOf(
  trx: Transaction<Database>,
  { environment, customerIds: ids, derived, sources, frozen }: Group,
  now: number,
): Promise<Pick<GroupDifferences, 'access' | 'unreadableActs'>> {
  const customerIds = [...ids]
  const stored = await loadEntitlements(trx, environment, customerIds)
  const unreadableActs: LatchkeyError[] = []
  const acts = await loadReadableActs(trx, environment, customerIds, unreadableActs)
  const after = new Map<string, SourceState[]>(customerIds.map((id) => [id, []]))
  const before = new Map<string, StateRow[]>(customerIds.map((id) => [id, []]))
  for (const [name, { state }] of derived.sources) {
    if (!frozen.has(name)) after.get(state.customerId ?? '')?.push(state)
  }
  for (const [name, row] of sources) {
    const customerId = row.customer_id ?? ''
    before.get(customerId)?.push(row)
    if (!frozen.has(name)) continue
    const state = readable(() => stateOf(row))
    if (state === null) after.delete(customerId)
    else after.get(customerId)?.push(state)
  }
  const access = new Map<string, CustomerAccess>()
  for (const [customerId, states] of after) {
    const own = acts.get(customerId)
    if (own === undefined) continue
    const under = (some: readonly SourceState[]) => accessFrom(inOrder(some), own, { customerId, now })
    const records = stored.get(customerId) ?? []
    const isDue = records.some((record) => isDueBy(record, now))
    access.set(customerId, {
      stored: records,
      before: isDue ? readable(() => under((before.get(customerId) ?? []).map(stateOf))) : records,
      after: under(states),
    })
  }
  return { access, unreadableActs }
}

/** Those of a customer of whom something can't be read are not in the map. */
async function loadReadableActs(
  trx: Transaction<Database>,
  environment: Environment,
  customerIds: readonly string[],
  unreadable: LatchkeyError[],
): Promise<ReadonlyMap<string, ActsOnCustomer>> {
  try {
    const acts = await loadActsOn(trx, environment, customerIds)
    return new Map(customerIds.map((id) => [id, acts.get(id) ?? NO_ACTS]))
  } catch (error) {
    if (!isLatchkeyError(error, 'store_unavailable')) throw error
    if (customerIds.length === 1) unreadable.push(error)
    if (customerIds.length === 1) return new Map()
    const each: [string, ActsOnCustomer][] = []
    for (const id of customerIds) each.push(...(await loadReadableActs(trx, environment, [id], unreadable)))
    return new Map(each)
  }
}

function readable<T>(read: () => T): T | null {
  try {
    return read()
  } catch (error) {
    if (isLatchkeyError(error, 'store_unavailable')) return null
    throw error
  }
}

function inOrder(states: readonly SourceState[]): readonly SourceState[] {
  return [...states].sort((a, b) => compareText(a.kind, b.kind) || compareText(a.id, b.id))
}

/** Whether the clock alone has changed it since; that is written down within the minute. */
export function isDueBy({ nextChangeAt }: EntitlementRecord, now: number): boolean {
  return nextChangeAt !== null && nextChangeAt <= now
}

/** What differs, each thing by its name. */
export function stateDifferences(
  { environment, frozen }: Group,
  { moved, links, unlinked, sources, access }: GroupDifferences,
  now: number,
): readonly StateDifference[] {
  const isElsewhere = ({ source, stored: { row } }: GroupDifferences['moved'][number]) =>
    row.source_kind !== (source?.kind ?? null) || row.source_id !== (source?.id ?? null)
  const hasOtherOutcome = ({ disposition, reason, stored: { row } }: GroupDifferences['moved'][number]) =>
    row.disposition !== disposition || row.reason !== reason
  const eventId = ({ stored: { row } }: GroupDifferences['moved'][number]) => row.event_id
  const entitlements = [...access.values()]
    .flatMap(({ stored, after }) => differencesOf(stored, after))
    .filter(({ before }) => before === null || !isDueBy(before, now))
  const ids: Readonly<Record<StateDifference['kind'], readonly string[]>> = {
    link: [...links.map(({ paymentId }) => paymentId), ...unlinked],
    place: moved.filter(isElsewhere).map(eventId),
    source: [...frozen, ...sources.map(({ key }) => sourceKey(key))],
    disposition: moved.filter(hasOtherOutcome).map(eventId),
    entitlement: entitlements.map(({ customerId, productId }) => `${customerId} ${productId}`),
  }
  const kinds = Object.keys(ids) as StateDifference['kind'][]
  return kinds.flatMap((kind) => ids[kind].map((id) => ({ environment, kind, id })))
}

/** How a customer's access would change. */
export function accessDifferences(
  environment: Environment,
  customerId: string,
  { stored, before, after }: CustomerAccess,
): readonly AccessDifference[] {
  return differencesOf(before ?? stored, after).flatMap(({ productId, before: was, after: is }) => {
    const [one, other] = [was ?? NEVER_GRANTED, is ?? NEVER_GRANTED]
    if (!isChange(one, other)) return []
    return [{ environment, customerId, productId, before: snapshot(one), after: snapshot(other) }]
  })
}
