/* Where a group is stored differently from what its events say. Only reads. */

import { foldActs } from '../entitlements/by-hand.js'
import { isChange, NEVER_GRANTED, snapshotOf } from '../entitlements/entitlement.js'
import { seqsInHistory } from '../entitlements/history.js'
import { sourceKey } from '../entitlements/source-of.js'
import { accessFrom, differencesOf, type EntitlementDifference } from '../ingest/settle.js'
import type { NormalizedEvent } from '../provider/event.js'
import { isDue, loadEntitlements } from '../store/entitlements.js'
import type { EventReading } from '../store/events.js'
import { hasSameForm } from '../store/recompute.js'
import type { Db } from '../store/schema.js'
import { sourceColumns } from '../store/sources.js'
import { type Group, isSameLink, nodeName } from './group.js'
import type { AccessDifference, StateDifference } from './run.js'

export type Differences = Readonly<Awaited<ReturnType<typeof differencesIn>>>

/** @param now epoch milliseconds, not earlier than anything that this process has stored */
export async function differencesIn(db: Db, group: Group, now: number) {
  const { links, derived } = group
  return {
    links: [...derived.links.values()].filter((link) => !isSameLink(link, links.get(link.paymentId))),
    /** Payments that nothing links. */
    unlinked: [...links.keys()].filter((paymentId) => !derived.links.has(paymentId)),
    events: eventDifferences(group),
    sources: sourceDifferences(group),
    access: await compareAccess(db, group, now),
  }
}

type EventDifference = ReturnType<typeof eventDifferences>[number]

function eventDifferences({ events, derived }: Group) {
  return events.flatMap((event) => {
    const { row, after, again } = event
    const read = again?.kind === 'read' ? again : null
    const source = derived.places.get(row.seq) ?? null
    const outcome = read?.quarantined ?? derived.outcomes.get(row.seq)
    if (outcome === undefined) return []
    const reading: EventReading = { eventId: read?.eventId ?? row.event_id, event: after, source, ...outcome }
    // Its stored form differs from its body.
    const hasOtherForm = read !== null && !hasSameForm(read.row, reading)
    const isElsewhere = row.source_kind !== (source?.kind ?? null) || row.source_id !== (source?.id ?? null)
    const hasOtherOutcome = row.disposition !== outcome.disposition || row.reason !== outcome.reason
    if (!hasOtherForm && !isElsewhere && !hasOtherOutcome) return []
    // Not what only its place among other events changes: that depends on which of them are read first.
    const saysOther = hasOtherForm || source === null || row.disposition === 'quarantined'
    return [{ ...event, reading, hasOtherForm, isElsewhere, hasOtherOutcome, saysOther }]
  })
}

/**
 * State and history as the stored text: the same events and policy always give the same text. `saved`: undefined if the
 * source is not stored. `folded`: null if it has no events.
 */
function sourceDifferences({ derived, sources }: Group) {
  const changed = [...derived.sources].flatMap(([name, folded]) => {
    const row = sources.get(name)
    const is = sourceColumns(folded)
    const isSame =
      row?.state === is.state &&
      row.history === is.history &&
      row.customer_id === is.customer_id &&
      row.newest_at === is.newest_at
    const saved = row && { seq: row.seq, customerId: row.customer_id }
    return isSame ? [] : [{ key: folded.state, saved, folded }]
  })
  const gone = [...sources].flatMap(([name, { kind, source_id: id, seq, customer_id: customerId }]) =>
    derived.sources.has(name) ? [] : [{ key: { kind, id }, saved: { seq, customerId }, folded: null }],
  )
  return [...changed, ...gone]
}

/** So far ahead may be the clock of another process that writes. */
const CLOCKS_APART_MS = 60_000

/** By customer. */
async function compareAccess(db: Db, { environment, customerIds, events, derived }: Group, now: number) {
  const stored = await loadEntitlements(db, environment, [...customerIds])
  const states = Map.groupBy([...derived.sources.values()], ({ state }) => state.customerId)
  const byHand = events.flatMap(({ after }) => (after?.subject === 'manual' ? [after] : []))
  const acts = Map.groupBy(byHand, ({ customerId }) => customerId)
  const access = [...customerIds].map((customerId) => {
    const own = (states.get(customerId) ?? []).map(({ state }) => state)
    const accessAt = (at: number) => accessFrom(own, foldActs(acts.get(customerId)), { customerId, now: at })
    const differingAt = (at: number) => differencesOf(stored.get(customerId) ?? [], accessAt(at))
    /** Whether it is stored as it will be once its end has come. */
    const isAhead = ({ productId, after }: EntitlementDifference): boolean => {
      const end = after?.nextChangeAt ?? Number.POSITIVE_INFINITY
      return end <= now + CLOCKS_APART_MS && differingAt(end).every((one) => one.productId !== productId)
    }
    const differences = differingAt(now).filter((one) => !isAhead(one))
    return [customerId, { differences, after: accessAt(now) }] as const
  })
  return new Map(access)
}

/** Whether it is only access that has ended and was not stored as ended yet: no difference. */
export function hasRunOut({ before, after }: EntitlementDifference, now: number): boolean {
  return before !== null && isDue(before, now) && after?.active !== true
}

/** The changes of a customer's access among these differences. */
export function accessChanges(
  { environment }: Group,
  differences: readonly EntitlementDifference[],
  now: number,
): readonly AccessDifference[] {
  return differences.flatMap((one) => {
    const { customerId, productId } = one
    const [was, is] = [one.before ?? NEVER_GRANTED, one.after ?? NEVER_GRANTED]
    if (hasRunOut(one, now) || !isChange(was, is)) return []
    return [{ environment, customerId, productId, before: snapshotOf(was), after: snapshotOf(is) }]
  })
}

export function namesOf(
  { environment }: Group,
  { events, links, unlinked, sources, access }: Differences,
  now: number,
): readonly StateDifference[] {
  const eventId = ({ row }: EventDifference) => row.event_id
  const entitlements = [...access.values()]
    .flatMap(({ differences }) => differences)
    .filter(({ before }) => before === null || !isDue(before, now))
  const names: readonly (readonly [StateDifference['kind'], readonly string[]])[] = [
    ['link', [...links.map(({ paymentId }) => paymentId), ...unlinked]],
    ['place', events.filter(({ isElsewhere }) => isElsewhere).map(eventId)],
    ['source', sources.map(({ key }) => sourceKey(key))],
    ['disposition', events.filter(({ hasOtherOutcome }) => hasOtherOutcome).map(eventId)],
    ['entitlement', entitlements.map(({ customerId, productId }) => `${customerId} ${productId}`)],
  ]
  return names.flatMap(([kind, ids]) => ids.map((id) => ({ environment, kind, id })))
}

/**
 * Sources, payments and customers to which these events belong, as `nodeName` and number of the event, although nothing
 * stored leads from there to the event: nothing will as long as the differences are not written.
 */
export function leadsFrom({ environment }: Group, { events, sources }: Differences) {
  const ofEvents = events.flatMap(({ row, before, after, reading: { source }, isElsewhere }) => {
    const id = paymentIn(after)
    const names = [
      ...(isElsewhere && source !== null ? [nodeName(environment, source.kind, source.id)] : []),
      ...(id !== null && id !== paymentIn(before) ? [nodeName(environment, 'link', id)] : []),
    ]
    return names.map((name) => [name, row.seq] as const)
  })
  const ofSources = sources.flatMap(({ saved, folded }) => {
    const id = folded?.state.customerId ?? null
    if (folded === null || id === null || id === saved?.customerId) return []
    return (seqsInHistory(folded.history) ?? []).map(
      (seq) => [nodeName(environment, 'customer', id), seq] as const,
    )
  })
  return [...ofEvents, ...ofSources]
}

function paymentIn(event: NormalizedEvent | null): string | null {
  return event?.subject === 'payment' || event?.subject === 'subscription' ? event.paymentId : null
}

/** Customers with changed facts, and payments whose linking event may be gone. */
export function concernsIn({ environment, doubted }: Group, { events, sources }: Differences) {
  const customers = events
    .filter(({ before, after }) => before !== after && detailsIn(before) !== detailsIn(after))
    .flatMap(({ before, after, row }) => [before?.customerId, after?.customerId, row.customer_id])
  const former = sources.flatMap(({ saved, folded }) =>
    saved?.customerId === folded?.state.customerId ? [] : [saved?.customerId],
  )
  return [
    ...[...customers, ...former].flatMap((id) =>
      id ? [{ environment, kind: 'customer', id } as const] : [],
    ),
    ...doubted.map((id) => ({ environment, kind: 'payment', id }) as const),
  ]
}

/** The facts about a person in an event, as text: the same events always give the same text. */
function detailsIn(event: NormalizedEvent | null): string | null {
  if (event === null || event.customerId === null) return null
  const { id, type, createdAt, customerId, customer, externalRef, metadata } = event
  const isDeletion = type === 'customer.deleted'
  return JSON.stringify([id, createdAt, customerId, customer, externalRef, metadata, isDeletion])
}
