import type { Transaction } from 'kysely'
import type { DerivedSource } from '../entitlements/derive.js'
import type { SourceKey, SourceState } from '../entitlements/model.js'
import { compareText } from '../entitlements/order.js'
import { type PaymentLink, sourceKey } from '../entitlements/source-of.js'
import { isLatchkeyError, type LatchkeyError } from '../errors.js'
import { accessFrom, differencesOf, type EntitlementDifference, saveAccess } from '../ingest/settle.js'
import type { Environment } from '../provider/event.js'
import { type EntitlementRecord, loadEntitlements } from '../store/entitlements.js'
import type { EventReading } from '../store/events.js'
import { type ActsOnCustomer, loadActsOn } from '../store/manual-events.js'
import { hasSameForm, placeOf } from '../store/recompute-rows.js'
import type { Database } from '../store/schema.js'
import { sourceColumns, stateOf } from '../store/sources.js'
import { type Group, type GroupEvent, isSameLink } from './group.js'

/** Where what is stored of a group is not what its events say. */
export interface GroupDifferences {
  readonly events: readonly EventDifference[]
  readonly links: readonly PaymentLink[]
  /** Payments that nothing links. */
  readonly unlinked: readonly string[]
  readonly sources: readonly { readonly key: SourceKey; readonly folded: DerivedSource | null }[]
  /** By customer, of all whose sources and acts can be read. */
  readonly access: ReadonlyMap<string, CustomerAccess>
  /** Something that was done by hand and can't be read. */
  readonly unreadableAct: LatchkeyError | null
}

/** An event, and what is to be stored of it. */
export interface EventDifference extends GroupEvent {
  readonly reading: EventReading
  /** Whether its body says something else than is stored of it. */
  readonly hasOtherForm: boolean
  /** Whether it belongs to another source. */
  readonly isElsewhere: boolean
  readonly hasOtherOutcome: boolean
}

export interface CustomerAccess {
  readonly differences: readonly EntitlementDifference[]
  readonly after: readonly EntitlementRecord[]
}

/** Compares what is stored of a group with what its events come to. Writes no more than what the clock has changed. */
export async function compareGroup(
  trx: Transaction<Database>,
  group: Group,
  now: number,
): Promise<GroupDifferences> {
  const { links, derived } = group
  return {
    events: eventDifferences(group),
    links: [...derived.links.values()].filter((link) => !isSameLink(link, links.get(link.paymentId))),
    unlinked: [...links.keys()].filter((paymentId) => !derived.links.has(paymentId)),
    sources: sourceDifferences(group),
    ...(await compareAccess(trx, group, now)),
  }
}

function eventDifferences({ events, derived, frozen }: Group): readonly EventDifference[] {
  const found: EventDifference[] = []
  const isFrozen = (key: SourceKey | null) => frozen.size > 0 && key !== null && frozen.has(sourceKey(key))
  for (const event of events) {
    const { row, after, again } = event
    const read = again?.kind === 'read' ? again : null
    const source = derived.places.get(row.seq) ?? null
    const outcome = read?.quarantined ?? derived.outcomes.get(row.seq)
    if (outcome === undefined || isFrozen(placeOf(row)) || isFrozen(source)) continue
    const reading = { eventId: read?.eventId ?? row.event_id, event: after, source, ...outcome }
    const hasOtherForm = read !== null && !hasSameForm(read.row, reading)
    const isElsewhere = row.source_kind !== (source?.kind ?? null) || row.source_id !== (source?.id ?? null)
    const hasOtherOutcome = row.disposition !== outcome.disposition || row.reason !== outcome.reason
    if (hasOtherForm || isElsewhere || hasOtherOutcome) {
      found.push({ ...event, reading, hasOtherForm, isElsewhere, hasOtherOutcome })
    }
  }
  return found
}

/** State and history as text, since text is what is stored: the same events and policy always give the same. */
function sourceDifferences({ derived, sources, frozen }: Group): GroupDifferences['sources'] {
  const changed = [...derived.sources].flatMap(([name, folded]) => {
    const row = sources.get(name)
    const is = sourceColumns(folded)
    const isSame =
      row?.state === is.state &&
      row.history === is.history &&
      row.customer_id === is.customer_id &&
      row.newest_at === is.newest_at
    return isSame || frozen.has(name) ? [] : [{ key: folded.state, folded }]
  })
  const gone = [...sources].flatMap(([name, { kind, source_id: id }]) =>
    frozen.has(name) || derived.sources.has(name) ? [] : [{ key: { kind, id }, folded: null }],
  )
  return [...changed, ...gone]
}

async function compareAccess(
  trx: Transaction<Database>,
  { environment, customerIds: ids, derived, sources, frozen }: Group,
  now: number,
): Promise<Pick<GroupDifferences, 'access' | 'unreadableAct'>> {
  const customerIds = [...ids]
  const stored = await entitlementsAsOf(trx, environment, customerIds, now)
  const { acts, unreadableAct } = await loadReadableActs(trx, environment, customerIds)
  const states = new Map<string | null, SourceState[]>([...acts.keys()].map((id) => [id, []]))
  for (const [name, { state }] of derived.sources) {
    if (!frozen.has(name)) states.get(state.customerId)?.push(state)
  }
  for (const row of [...frozen].flatMap((name) => sources.get(name) ?? [])) {
    const { result: state } = await attempt(async () => stateOf(row))
    if (state === null) states.delete(row.customer_id)
    else states.get(row.customer_id)?.push(state)
  }
  const access = new Map<string, CustomerAccess>()
  for (const [customerId, own] of acts) {
    const inOrder = states
      .get(customerId)
      ?.sort((a, b) => compareText(a.kind, b.kind) || compareText(a.id, b.id))
    if (inOrder === undefined) continue
    const after = accessFrom(inOrder, own, { customerId, now })
    access.set(customerId, { differences: differencesOf(stored.get(customerId) ?? [], after), after })
  }
  return { access, unreadableAct }
}

/** What is written down of them, once what the clock has changed is: the change log says so of that, where it can. */
async function entitlementsAsOf(
  trx: Transaction<Database>,
  environment: Environment,
  customerIds: readonly string[],
  now: number,
): Promise<ReadonlyMap<string, readonly EntitlementRecord[]>> {
  const stored = await loadEntitlements(trx, environment, customerIds)
  const due = customerIds.filter((id) => stored.get(id)?.some((record) => isDueBy(record, now)))
  if (due.length === 0) return stored
  await attempt(() => saveAccess(trx, environment, due, now, () => ({ kind: 'clock', eventId: null })))
  return loadEntitlements(trx, environment, customerIds)
}

/** Whether the clock alone has changed it since. */
export function isDueBy({ nextChangeAt }: EntitlementRecord, now: number): boolean {
  return nextChangeAt !== null && nextChangeAt <= now
}

/** By customer; who has something that can't be read is not in the map. */
async function loadReadableActs(
  trx: Transaction<Database>,
  environment: Environment,
  customerIds: readonly string[],
): Promise<{ acts: ReadonlyMap<string, ActsOnCustomer>; unreadableAct: LatchkeyError | null }> {
  const all = await attempt(() => loadActsOn(trx, environment, customerIds))
  if (all.result !== null) return { acts: all.result, unreadableAct: null }
  const acts = new Map<string, ActsOnCustomer>()
  for (const id of customerIds) {
    const own = await attempt(() => loadActsOn(trx, environment, [id]))
    for (const [customerId, one] of own.result ?? []) acts.set(customerId, one)
  }
  return { acts, unreadableAct: all.error }
}

/** A null result where what is stored can't be read. */
async function attempt<T>(
  read: () => Promise<T>,
): Promise<{ result: T; error: null } | { result: null; error: LatchkeyError }> {
  try {
    return { result: await read(), error: null }
  } catch (error) {
    if (!isLatchkeyError(error, 'store_unavailable')) throw error
    return { result: null, error }
  }
}
