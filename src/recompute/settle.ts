import { foldActs } from '../entitlements/by-hand.js'
import { isChange, NEVER_GRANTED, snapshotOf } from '../entitlements/entitlement.js'
import { seqsInHistory } from '../entitlements/history.js'
import { sourceKey } from '../entitlements/source-of.js'
import { accessFrom, differencesOf, type EntitlementDifference, writeAccess } from '../ingest/settle.js'
import type { Environment, NormalizedEvent } from '../provider/event.js'
import { isDue, loadEntitlements } from '../store/entitlements.js'
import type { EventReading } from '../store/events.js'
import { hasSameForm, saveForms, savePlaces } from '../store/recompute.js'
import { ENVIRONMENTS, type Tx } from '../store/schema.js'
import { deleteLinks, deleteSources, saveLinks, saveSources, sourceColumns } from '../store/sources.js'
import { type Group, isSameLink, readGroup, type Seeds } from './group.js'
import {
  type AccessDifference,
  isDone,
  isDryReplay,
  nodeName,
  noteConcerned,
  noteDone,
  noteLeading,
  type ProjectedCustomer,
  type Run,
  type StateDifference,
} from './run.js'

/**
 * Corrects the groups of these seeds, or records what would change.
 * @returns how many events they have
 */
export async function settleGroups(trx: Tx, run: Run, seeds: Seeds): Promise<number> {
  const now = run.clock()
  let count = 0
  for (const environment of ENVIRONMENTS) {
    const group = await readGroup(trx, run, environment, seeds)
    const differences = await differencesIn(trx, group, now)
    if (run.mode === 'apply') await write(trx, run, environment, differences, now)
    else noteFound(run, group, differences, now)
    noteConcerns(run, group, differences)
    noteEvents(run, group, differences)
    count += group.events.length
  }
  return count
}

type Differences = Awaited<ReturnType<typeof differencesIn>>

async function differencesIn(trx: Tx, group: Group, now: number) {
  const { links, derived } = group
  return {
    links: [...derived.links.values()].filter((link) => !isSameLink(link, links.get(link.paymentId))),
    /** Payments that nothing links. */
    unlinked: [...links.keys()].filter((paymentId) => !derived.links.has(paymentId)),
    events: eventDifferences(group),
    sources: sourceDifferences(group),
    access: await compareAccess(trx, group, now),
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

/** By customer. */
async function compareAccess(trx: Tx, { environment, customerIds, events, derived }: Group, now: number) {
  const stored = await loadEntitlements(trx, environment, [...customerIds])
  const states = Map.groupBy([...derived.sources.values()], ({ state }) => state.customerId)
  const byHand = events.flatMap(({ after }) => (after?.subject === 'manual' ? [after] : []))
  const acts = Map.groupBy(byHand, ({ customerId }) => customerId)
  const access = [...customerIds].map((customerId) => {
    const own = (states.get(customerId) ?? []).map(({ state }) => state)
    const after = accessFrom(own, foldActs(acts.get(customerId)), { customerId, now })
    return [customerId, { differences: differencesOf(stored.get(customerId) ?? [], after), after }] as const
  })
  return new Map(access)
}

/** Whether it is only access that has ended and was not stored as ended yet: no difference. */
function hasRunOut({ before, after }: EntitlementDifference, now: number): boolean {
  return before !== null && isDue(before, now) && after?.active !== true
}

/** Writes what differs, and appends changes of access to the change log. */
async function write(
  trx: Tx,
  run: Run,
  environment: Environment,
  { events, links, unlinked, sources, access }: Differences,
  now: number,
): Promise<void> {
  const forms = events.filter(({ hasOtherForm }) => hasOtherForm)
  const places = events.filter(({ isElsewhere, hasOtherOutcome }) => isElsewhere || hasOtherOutcome)
  const folded = sources.flatMap(({ saved, folded }) => (folded === null ? [] : [{ ...folded, saved }]))
  const gone = sources.filter((one) => one.folded === null).map(({ key }) => key)
  const entitlements = [...access.values()].flatMap((one) => one.differences)
  await saveForms(trx, environment, forms)
  await savePlaces(trx, places)
  await saveLinks(trx, environment, links)
  await deleteLinks(trx, environment, unlinked)
  await saveSources(trx, environment, folded)
  await deleteSources(trx, environment, gone)
  await writeAccess(trx, environment, entitlements, now, (difference) => ({
    kind: hasRunOut(difference, now) ? 'clock' : 'rebuild',
    eventId: null,
  }))
  run.hasWritten ||= [events, links, unlinked, sources, entitlements].some(({ length }) => length > 0)
}

function noteFound(run: Run, group: Group, differences: Differences, now: number): void {
  const { environment } = group
  for (const one of run.mode === 'verify' ? namesOf(group, differences, now) : []) {
    run.found.differences.set(JSON.stringify(one), one)
  }
  for (const [customerId, access] of differences.access) {
    const name = nodeName(environment, 'customer', customerId)
    const changes = access.differences
      .filter((one) => !hasRunOut(one, now))
      .flatMap(({ productId, before, after }): AccessDifference[] => {
        const [was, is] = [before ?? NEVER_GRANTED, after ?? NEVER_GRANTED]
        if (!isChange(was, is)) return []
        return [{ environment, customerId, productId, before: snapshotOf(was), after: snapshotOf(is) }]
      })
    if (changes.length > 0) run.found.access.set(name, changes)
    else run.found.access.delete(name)
    if (changes.length === 0 && !run.found.customers.has(name)) continue
    const active = access.after.filter((one) => one.active)
    noteAhead(run, environment, customerId, { activeProducts: active.map(({ productId }) => productId) })
  }
  // While it is not written, nothing stored leads there.
  for (const { row, before, after, reading, isElsewhere } of differences.events) {
    const { source } = reading
    if (isElsewhere && source !== null)
      noteLeading(run, nodeName(environment, source.kind, source.id), row.seq)
    const id = paymentIn(after)
    if (id === null || id === paymentIn(before)) continue
    noteLeading(run, nodeName(environment, 'link', id), row.seq)
  }
  for (const { saved, folded } of differences.sources) {
    const id = folded?.state.customerId ?? null
    if (folded === null || id === null || id === saved?.customerId) continue
    for (const seq of seqsInHistory(folded.history) ?? []) {
      noteLeading(run, nodeName(environment, 'customer', id), seq)
    }
  }
}

function paymentIn(event: NormalizedEvent | null): string | null {
  return event?.subject === 'payment' || event?.subject === 'subscription' ? event.paymentId : null
}

/** Records a customer's new access and accounts, to compute changes of roles and groups. */
export function noteAhead(
  run: Run,
  environment: Environment,
  customerId: string,
  next: Partial<Pick<ProjectedCustomer, 'activeProducts' | 'accounts'>>,
): void {
  if (!isDryReplay(run)) return
  const { customers } = run.found
  const name = nodeName(environment, 'customer', customerId)
  const known = customers.get(name) ?? { environment, customerId, activeProducts: null, accounts: null }
  customers.set(name, { ...known, ...next })
}

function namesOf(
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

/** Records customers with changed facts, and payments whose linking event may be gone. */
function noteConcerns(run: Run, { environment, doubted }: Group, { events, sources }: Differences): void {
  const customers = events
    .filter(({ before, after }) => before !== after && detailsIn(before) !== detailsIn(after))
    .flatMap(({ before, after, row }) => [before?.customerId, after?.customerId, row.customer_id])
  const former = sources.flatMap(({ saved, folded }) =>
    saved?.customerId === folded?.state.customerId ? [] : [saved?.customerId],
  )
  for (const id of [...customers, ...former]) {
    if (id) noteConcerned(run, { environment, kind: 'customer', id })
  }
  for (const id of doubted) noteConcerned(run, { environment, kind: 'payment', id })
}

/** The facts about a person in an event, as text: the same events always give the same text. */
function detailsIn(event: NormalizedEvent | null): string | null {
  if (event === null || event.customerId === null) return null
  const { id, type, createdAt, customerId, customer, externalRef, metadata } = event
  const isDeletion = type === 'customer.deleted'
  return JSON.stringify([id, createdAt, customerId, customer, externalRef, metadata, isDeletion])
}

/** Records that they are done, and the results of those read again. */
function noteEvents(run: Run, group: Group, { events }: Differences): void {
  const changed = new Set(events.filter((one) => one.saysOther).map(({ row }) => row.seq))
  for (const { row, again } of group.events) {
    if (isDone(run, row.seq)) continue
    if (again?.kind === 'read') {
      run.job.counts.read += 1
      if (again.quarantined !== null) run.job.counts.quarantined += 1
      if (changed.has(row.seq)) {
        run.job.counts.changed += 1
        if (again.quarantined === null && row.disposition === 'quarantined') run.job.counts.recovered += 1
      }
    } else if (again !== null && again.kind !== 'byHand') run.job.counts[again.kind] += 1
    noteDone(run, row.seq)
  }
}
