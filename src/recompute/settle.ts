import type { Transaction } from 'kysely'
import { seqsInHistory } from '../entitlements/history.js'
import { sourceKey } from '../entitlements/source-of.js'
import { isChange, NEVER_GRANTED, snapshot, writeAccess } from '../ingest/settle.js'
import type { Environment, NormalizedEvent } from '../provider/event.js'
import { placeOf, saveForms, savePlaces } from '../store/recompute-rows.js'
import type { Database } from '../store/schema.js'
import { deleteLinks, deleteSources, replaceSources, saveLinks } from '../store/sources.js'
import { compareGroup, type EventDifference, type GroupDifferences, isDueBy } from './compare.js'
import { type Group, readGroup, type Seeds } from './group.js'
import type { AccessDifference, CustomerAhead, StateDifference } from './report.js'
import { isDone, isDryReplay, nodeName, noteConcerned, noteDone, noteLeading, type Run } from './run.js'

/**
 * Brings the groups of these seeds in order, or notes what would be changed.
 * @returns how many events they have
 */
export async function settleGroups(
  trx: Transaction<Database>,
  run: Run,
  environment: Environment,
  seeds: Seeds,
): Promise<number> {
  const now = run.clock()
  const group = await readGroup(trx, run, environment, seeds)
  const differences = await compareGroup(trx, group, now)
  // A source whose history lacks some of its events would be folded from the others alone.
  if (run.unlisted !== 'known' && (!group.isListed || differences.sources.length > 0)) {
    run.unlisted = 'needed'
    return 0
  }
  for (const { unreadable, row } of group.events) {
    // A verification names its source.
    if (run.mode !== 'verify' || placeOf(row) === null) run.unreadable ??= unreadable
  }
  run.unreadable ??= differences.unreadableAct
  if (run.mode === 'apply') await write(trx, run, environment, differences, now)
  else noteFound(run, group, differences, now)
  noteConcerns(run, group, differences)
  noteEvents(run, group, differences)
  return group.events.length
}

/** Writes what differs, and appends what changes for anybody to the change log. */
async function write(
  trx: Transaction<Database>,
  run: Run,
  environment: Environment,
  { events, links, unlinked, sources, access }: GroupDifferences,
  now: number,
): Promise<void> {
  const forms = events.filter(({ hasOtherForm }) => hasOtherForm)
  const places = events.filter(({ isElsewhere, hasOtherOutcome }) => isElsewhere || hasOtherOutcome)
  const folded = sources.flatMap((one) => one.folded ?? [])
  const gone = sources.filter((one) => one.folded === null).map(({ key }) => key)
  const entitlements = [...access.values()].flatMap((one) => one.differences)
  await saveForms(trx, environment, forms)
  await savePlaces(trx, places)
  await saveLinks(trx, environment, links)
  await deleteLinks(trx, environment, unlinked)
  await replaceSources(trx, environment, folded)
  await deleteSources(trx, environment, gone)
  await writeAccess(trx, environment, entitlements, now, () => ({ kind: 'rebuild', eventId: null }))
  run.hasWritten ||= [events, links, unlinked, sources, entitlements].some(({ length }) => length > 0)
}

function noteFound(run: Run, group: Group, differences: GroupDifferences, now: number): void {
  const { environment } = group
  for (const one of run.mode === 'verify' ? namesOf(group, differences, now) : []) {
    run.found.differences.set(JSON.stringify(one), one)
  }
  for (const [customerId, access] of differences.access) {
    const name = nodeName(environment, { kind: 'customer', id: customerId })
    const changes = access.differences.flatMap(({ productId, before, after }): AccessDifference[] => {
      const [was, is] = [before ?? NEVER_GRANTED, after ?? NEVER_GRANTED]
      if (!isChange(was, is)) return []
      return [{ environment, customerId, productId, before: snapshot(was), after: snapshot(is) }]
    })
    if (changes.length > 0) run.found.access.set(name, changes)
    else run.found.access.delete(name)
    if (changes.length === 0 && !run.found.customers.has(name)) continue
    const active = access.after.filter((one) => one.active)
    noteAhead(run, environment, customerId, { activeProducts: active.map(({ productId }) => productId) })
  }
  // What is not written leads nobody there.
  for (const { row, before, after, reading, isElsewhere } of differences.events) {
    const { source } = reading
    if (isElsewhere && source !== null) noteLeading(run, nodeName(environment, source), row.seq)
    const id = paymentIn(after)
    if (id === null || id === paymentIn(before)) continue
    noteLeading(run, nodeName(environment, { kind: 'payment', id }), row.seq)
  }
  for (const { key, folded } of differences.sources) {
    const id = folded?.state.customerId ?? null
    if (folded === null || id === null || id === group.sources.get(sourceKey(key))?.customer_id) continue
    for (const seq of seqsInHistory(folded.history) ?? []) {
      noteLeading(run, nodeName(environment, { kind: 'customer', id }), seq)
    }
  }
}

function paymentIn(event: NormalizedEvent | null): string | null {
  return event?.subject === 'payment' || event?.subject === 'subscription' ? event.paymentId : null
}

/** Notes how a customer would be, for what roles and groups would follow. */
export function noteAhead(
  run: Run,
  environment: Environment,
  customerId: string,
  next: Partial<Pick<CustomerAhead, 'activeProducts' | 'accounts'>>,
): void {
  if (!isDryReplay(run)) return
  const { customers } = run.found
  const name = nodeName(environment, { kind: 'customer', id: customerId })
  const known = customers.get(name) ?? { environment, customerId, activeProducts: null, accounts: null }
  customers.set(name, { ...known, ...next })
}

/** Each thing that differs by its name. */
function namesOf(
  { environment, frozen }: Group,
  { events, links, unlinked, sources, access }: GroupDifferences,
  now: number,
): readonly StateDifference[] {
  const eventId = ({ row }: EventDifference) => row.event_id
  const entitlements = [...access.values()]
    .flatMap(({ differences }) => differences)
    .filter(({ before }) => before === null || !isDueBy(before, now))
  const ids: Readonly<Record<StateDifference['kind'], readonly string[]>> = {
    link: [...links.map(({ paymentId }) => paymentId), ...unlinked],
    place: events.filter(({ isElsewhere }) => isElsewhere).map(eventId),
    source: [...frozen, ...sources.map(({ key }) => sourceKey(key))],
    disposition: events.filter(({ hasOtherOutcome }) => hasOtherOutcome).map(eventId),
    entitlement: entitlements.map(({ customerId, productId }) => `${customerId} ${productId}`),
  }
  const kinds = Object.keys(ids) as StateDifference['kind'][]
  return kinds.flatMap((kind) => ids[kind].map((id) => ({ environment, kind, id })))
}

/** Notes of whom events say something else now, and which payments no event of theirs may link any more. */
function noteConcerns(
  run: Run,
  { environment, sources: stored, doubted }: Group,
  { events, sources }: GroupDifferences,
): void {
  const customers = events
    .filter(({ hasOtherForm }) => hasOtherForm)
    .filter(({ before, after }) => detailsIn(before) !== detailsIn(after))
    .flatMap(({ before, after, row }) => [before?.customerId, after?.customerId, row.customer_id])
  const former = sources.flatMap(({ key, folded }) => {
    const id = stored.get(sourceKey(key))?.customer_id
    return id === folded?.state.customerId ? [] : [id]
  })
  for (const id of [...customers, ...former]) {
    if (id) noteConcerned(run, { environment, kind: 'customer', id })
  }
  for (const id of doubted) noteConcerned(run, { environment, kind: 'payment', id })
}

/** What an event says of a person, as text: the same events always give the same. */
function detailsIn(event: NormalizedEvent | null): string | null {
  if (event === null || event.customerId === null) return null
  const { id, type, createdAt, customerId, customer, externalRef, metadata } = event
  const isDeletion = type === 'customer.deleted'
  return JSON.stringify([id, createdAt, customerId, customer, externalRef, metadata, isDeletion])
}

function noteEvents(run: Run, group: Group, { events }: GroupDifferences): void {
  const differing = new Map(events.map((event) => [event.row.seq, event]))
  for (const { row, again } of group.events) {
    if (isDone(run, row.seq)) continue
    if (again?.kind === 'read') {
      run.counts.read += 1
      if (again.quarantined !== null) run.counts.quarantined += 1
      if (hasNews(differing.get(row.seq))) {
        run.counts.changed += 1
        if (again.quarantined === null && row.disposition === 'quarantined') run.counts.recovered += 1
      }
    } else if (again !== null && again.kind !== 'byHand') run.counts[again.kind] += 1
    noteDone(run, row.seq)
  }
}

/** Whether an event's own reading has changed, beside what has become of it with the others of its source. */
function hasNews(event: EventDifference | undefined): boolean {
  if (event === undefined) return false
  const isFolded = event.reading.source !== null && event.row.disposition !== 'quarantined'
  return event.hasOtherForm || event.isElsewhere || !isFolded
}
