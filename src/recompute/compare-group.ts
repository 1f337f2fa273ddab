import type { Transaction } from 'kysely'
import type { DerivedSource } from '../entitlements/derive.js'
import type { Outcome } from '../entitlements/disposition.js'
import type { SourceKey, SourceState } from '../entitlements/model.js'
import { compareText } from '../entitlements/order.js'
import { type PaymentLink, sourceKey } from '../entitlements/source-of.js'
import { isLatchkeyError, type LatchkeyError } from '../errors.js'
import {
  accessFrom,
  differencesOf,
  type EntitlementDifference,
  isChange,
  NEVER_GRANTED,
  refreshAllDue,
  snapshot,
  writeAccess,
} from '../ingest/settle.js'
import type { Environment } from '../provider/event.js'
import { type ActsOnCustomer, loadActsOn, NO_ACTS } from '../store/acts-on-customers.js'
import { type EntitlementRecord, loadEntitlements } from '../store/entitlements.js'
import type { EventReading } from '../store/event-reading.js'
import { keyOfSource, type MovedEvent, moveEvents } from '../store/group-rows.js'
import { deleteLinks, saveLinks } from '../store/payment-links.js'
import { rewriteEvents, type StandingEvent, saysTheSame } from '../store/replayed-events.js'
import type { Database } from '../store/schema.js'
import { deleteSources, replaceSources, sourceColumns, stateOf } from '../store/sources.js'
import type { AccessDifference } from './access-difference.js'
import { type Group, type GroupEvent, isSameLink, keyIn } from './group.js'

/** Something that is stored otherwise than the events say. */
export interface StateDifference {
  readonly environment: Environment
  readonly kind: 'source' | 'link' | 'place' | 'disposition' | 'entitlement'
  /** `subscription sub_1`, the payment's id of a `link`, an event's id, or `cus_1 pro_1`. */
  readonly id: string
}

/** An event that was read again, and what is to be stored of it. */
export interface ChangedReading extends EventReading {
  readonly row: StandingEvent
  readonly stored: GroupEvent
  /** Whether it says something else, beside what has become of it with others. */
  readonly isOther: boolean
}

/** Where what is stored of a group is not what its events say. */
export interface GroupDifferences {
  readonly readings: readonly ChangedReading[]
  readonly moved: readonly (MovedEvent & { readonly eventId: string })[]
  readonly links: readonly PaymentLink[]
  /** Payments that nothing links. */
  readonly unlinked: readonly string[]
  readonly sources: readonly { readonly key: SourceKey; readonly folded: DerivedSource | null }[]
  /** By customer: of those whose sources and acts can be read. */
  readonly access: ReadonlyMap<string, CustomerAccess>
  /** What keeps anything else from being compared. */
  readonly unreadable: readonly Unreadable[]
}

/** An event that can't be read. */
export interface Unreadable {
  readonly error: LatchkeyError
  /** Whether it is of a source, which is named as a difference. */
  readonly isNamed: boolean
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
  const { events, derived, frozen } = group
  const readings: ChangedReading[] = []
  const moved: (MovedEvent & { readonly eventId: string })[] = []
  for (const stored of events) {
    const { row, after, again } = stored
    const source = derived.places.get(row.seq) ?? null
    if (isFrozen(keyIn(row), frozen) || isFrozen(source, frozen)) continue
    const outcome = derived.outcomes.get(row.seq)
    if (again?.kind === 'read') {
      const reading = readingOf(again, source, outcome)
      if (saysTheSame(again.row, reading)) continue
      const { disposition, reason } = again.row
      // What waits with its source, folding tells.
      const isFolded = source !== null && disposition !== 'quarantined'
      const isOther = !isFolded || !saysTheSame(again.row, { ...reading, disposition, reason })
      readings.push({ ...reading, row: again.row, stored, isOther })
    } else if (after !== null && outcome !== undefined && !standsAs(row, source, outcome)) {
      moved.push({ seq: row.seq, eventId: row.event_id, source, ...outcome })
    }
  }
  const { links, unlinked } = linksOf(group)
  const { access, unreadable } = await accessOf(trx, group, now)
  return {
    readings,
    moved,
    links,
    unlinked,
    sources: sourcesOf(group),
    access,
    unreadable: [
      ...events.flatMap(({ unreadable: error, row }) =>
        error === null ? [] : [{ error, isNamed: keyIn(row) !== null }],
      ),
      ...unreadable.map((error) => ({ error, isNamed: false })),
    ],
  }
}

function isFrozen(key: SourceKey | null, frozen: Group['frozen']): boolean {
  return key !== null && frozen.has(sourceKey(key))
}

function readingOf(
  { eventId, normalized }: Extract<GroupEvent['again'], { kind: 'read' }>,
  source: SourceKey | null,
  outcome: Outcome | undefined,
): EventReading {
  if (!normalized.ok) {
    return { eventId, disposition: 'quarantined', reason: normalized.reason, event: null, source: null }
  }
  const { disposition, reason } = outcome as Outcome
  return { eventId, event: normalized.event, source, disposition, reason }
}

function standsAs(row: GroupEvent['row'], source: SourceKey | null, outcome: Outcome): boolean {
  return (
    row.source_kind === (source?.kind ?? null) &&
    row.source_id === (source?.id ?? null) &&
    row.disposition === outcome.disposition &&
    row.reason === outcome.reason
  )
}

function linksOf({ links: stored, derived }: Group): Pick<GroupDifferences, 'links' | 'unlinked'> {
  return {
    links: [...derived.links.values()].filter((link) => !isSameLink(link, stored.get(link.paymentId))),
    unlinked: [...stored.keys()].filter((paymentId) => !derived.links.has(paymentId)),
  }
}

/** State and history as text, since text is what is stored: the same events and policy always give the same. */
function sourcesOf({ derived, sources, frozen }: Group): GroupDifferences['sources'] {
  const found: { key: SourceKey; folded: DerivedSource | null }[] = []
  for (const [name, folded] of derived.sources) {
    if (frozen.has(name)) continue
    const row = sources.get(name)
    const is = sourceColumns(folded)
    const isSame =
      row !== undefined &&
      row.state === is.state &&
      row.history === is.history &&
      row.customer_id === is.customer_id &&
      row.newest_at === is.newest_at
    if (!isSame) found.push({ key: { kind: folded.state.kind, id: folded.state.id }, folded })
  }
  for (const [name, row] of sources) {
    if (!frozen.has(name) && !derived.sources.has(name)) found.push({ key: keyOfSource(row), folded: null })
  }
  return found
}

async function accessOf(
  trx: Transaction<Database>,
  group: Group,
  now: number,
): Promise<{ access: GroupDifferences['access']; unreadable: readonly LatchkeyError[] }> {
  const { environment, derived, sources, frozen } = group
  const customerIds = [...group.customerIds]
  const stored = await loadEntitlements(trx, environment, customerIds)
  const unreadable: LatchkeyError[] = []
  const acts = await loadReadableActs(trx, environment, customerIds, unreadable)
  const after = new Map<string, SourceState[]>(customerIds.map((id) => [id, []]))
  const before = new Map<string, (() => SourceState)[]>(customerIds.map((id) => [id, []]))
  const unknown = new Set<string>()
  for (const [name, { state }] of derived.sources) {
    if (!frozen.has(name)) after.get(state.customerId ?? '')?.push(state)
  }
  for (const [name, row] of sources) {
    const customerId = row.customer_id ?? ''
    before.get(customerId)?.push(() => stateOf(row))
    if (!frozen.has(name)) continue
    const state = readable(() => stateOf(row))
    if (state === null) unknown.add(customerId)
    else after.get(customerId)?.push(state)
  }
  const access = new Map<string, CustomerAccess>()
  for (const customerId of customerIds) {
    const own = acts.get(customerId)
    if (own === undefined || unknown.has(customerId)) continue
    const records = stored.get(customerId) ?? []
    const isDue = records.some((record) => isDueBy(record, now))
    const was = (): readonly EntitlementRecord[] =>
      accessFrom(inOrder((before.get(customerId) ?? []).map((state) => state())), own, { customerId, now })
    access.set(customerId, {
      stored: records,
      before: isDue ? readable(was) : records,
      after: accessFrom(inOrder(after.get(customerId) ?? []), own, { customerId, now }),
    })
  }
  return { access, unreadable }
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
  return states.length < 2
    ? states
    : [...states].sort((a, b) => compareText(a.kind, b.kind) || compareText(a.id, b.id))
}

/** Whether the clock alone has changed it since; that is written down within the minute. */
function isDueBy({ nextChangeAt }: EntitlementRecord, now: number): boolean {
  return nextChangeAt !== null && nextChangeAt <= now
}

/** What differs, each thing by its name. */
export function stateDifferences(
  group: Group,
  { moved, links, unlinked, sources, access }: GroupDifferences,
  now: number,
): readonly StateDifference[] {
  const { environment, events, frozen } = group
  const rows = new Map(events.map(({ row }) => [row.seq, row]))
  const found: Omit<StateDifference, 'environment'>[] = []
  for (const { paymentId } of links) found.push({ kind: 'link', id: paymentId })
  for (const id of unlinked) found.push({ kind: 'link', id })
  for (const { seq, eventId, source } of moved) {
    const row = rows.get(seq)
    if (row?.source_kind !== (source?.kind ?? null) || row?.source_id !== (source?.id ?? null)) {
      found.push({ kind: 'place', id: eventId })
    }
  }
  for (const id of frozen) found.push({ kind: 'source', id })
  for (const { key } of sources) found.push({ kind: 'source', id: sourceKey(key) })
  for (const { seq, eventId, disposition, reason } of moved) {
    const row = rows.get(seq)
    if (row?.disposition !== disposition || row.reason !== reason)
      found.push({ kind: 'disposition', id: eventId })
  }
  for (const { stored, after } of access.values()) {
    for (const { customerId, productId, before } of differencesOf(stored, after)) {
      if (before !== null && isDueBy(before, now)) continue
      found.push({ kind: 'entitlement', id: `${customerId} ${productId}` })
    }
  }
  return found.map((one) => ({ environment, ...one }))
}

/** Whose access would change; of a customer whose access would not, an empty list. */
export function accessDifferences(
  { environment }: Group,
  { access }: GroupDifferences,
): ReadonlyMap<string, readonly AccessDifference[]> {
  return new Map(
    [...access].map(([customerId, { stored, before, after }]) => [
      customerId,
      differencesOf(before ?? stored, after).flatMap(({ productId, before: was, after: is }) => {
        const [one, other] = [was ?? NEVER_GRANTED, is ?? NEVER_GRANTED]
        if (!isChange(one, other)) return []
        return [{ environment, customerId, productId, before: snapshot(one), after: snapshot(other) }]
      }),
    ]),
  )
}

/**
 * Writes what differs, and appends what changes for anybody to the change log.
 * @returns whether anything did
 */
export async function applyGroup(
  trx: Transaction<Database>,
  { environment }: Group,
  differences: GroupDifferences,
  now: number,
): Promise<boolean> {
  const { readings, moved, links, unlinked, sources, access } = differences
  const changed = await accessToWrite(trx, environment, access, now)
  await rewriteEvents(trx, environment, readings)
  await moveEvents(trx, moved)
  await saveLinks(trx, environment, links)
  await deleteLinks(trx, environment, unlinked)
  await replaceSources(
    trx,
    environment,
    sources.flatMap(({ folded }) => folded ?? []),
  )
  await deleteSources(
    trx,
    environment,
    sources.filter(({ folded }) => folded === null).map(({ key }) => key),
  )
  await writeAccess(trx, environment, changed, now, () => ({ kind: 'rebuild', eventId: null }))
  return [readings, moved, links, unlinked, sources, changed].some(({ length }) => length > 0)
}

async function accessToWrite(
  trx: Transaction<Database>,
  environment: Environment,
  access: GroupDifferences['access'],
  now: number,
): Promise<readonly EntitlementDifference[]> {
  const changed = [...access].filter(([, { stored, after }]) => differencesOf(stored, after).length > 0)
  if (changed.length === 0) return []
  const isAnyDue = changed.some(([, { stored }]) => stored.some((record) => isDueBy(record, now)))
  if (isAnyDue) await tellDue(trx, now)
  const ids = changed.map(([customerId]) => customerId)
  const stored = isAnyDue ? await loadEntitlements(trx, environment, ids) : null
  return changed.flatMap(([customerId, one]) =>
    differencesOf(stored?.get(customerId) ?? one.stored, one.after),
  )
}

/**
 * What the clock has changed is told as that, and not as the recomputing's; but for what follows from a state that can't
 * be read before it is replaced.
 */
async function tellDue(trx: Transaction<Database>, now: number): Promise<void> {
  try {
    await refreshAllDue(trx, now)
  } catch (error) {
    if (!isLatchkeyError(error, 'store_unavailable')) throw error
  }
}
