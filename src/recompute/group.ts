/* Which stored events, sources and customers have to be looked at together. Only reads. */

import { type Derived, derive } from '../entitlements/derive.js'
import { seqsInHistory } from '../entitlements/history.js'
import type { SourceKey } from '../entitlements/model.js'
import type { Policy } from '../entitlements/policy.js'
import { linkOf, type PaymentLink, sourceKey } from '../entitlements/source-of.js'
import type { Environment, NormalizedEvent } from '../provider/event.js'
import { matchesFilter } from '../store/event-walk.js'
import { type GroupRow, type JobScope, loadGroupRows, loadSeqsByHand, placeOf } from '../store/recompute.js'
import type { Db } from '../store/schema.js'
import { loadLinks, loadSourceRows, loadSourceRowsOf, type SourceRow } from '../store/sources.js'
import { damagedForm, eventInFormIfReadable } from '../store/stored-form.js'
import { type ReadAgain, readAgain, type TakenIds } from './read-again.js'

/** An event of a group: its stored reading and its new one. */
export interface GroupEvent {
  readonly row: GroupRow
  /** Null: it could not be used. */
  readonly before: NormalizedEvent | null
  readonly after: NormalizedEvent | null
  /** Null: it was not to be read again. */
  readonly again: ReadAgain | null
}

export interface Seeds {
  readonly rows?: readonly GroupRow[]
  readonly sources?: readonly (SourceKey & { readonly environment: Environment })[]
  /** Payments with their newest link in all events of the environment; null: none links it. */
  readonly payments?: readonly {
    readonly environment: Environment
    readonly id: string
    readonly link: PaymentLink | null
  }[]
}

/**
 * A closed set of sources: no event, link or customer in it leads to another source, as stored or as it should be.
 */
export type Group = Readonly<Awaited<ReturnType<typeof readGroup>>>

const EMPTY: Derived = { links: new Map(), places: new Map(), outcomes: new Map(), sources: new Map() }

/** A source, a customer, or a payment whose link is wanted. */
interface Node {
  readonly kind: SourceKey['kind'] | 'customer' | 'link'
  readonly id: string
}

/** One name for a source, a payment or a customer of an environment. */
export function nodeName(environment: Environment, kind: string, id: string | null | undefined): string {
  return `${environment} ${kind} ${id}`
}

export interface GroupReader {
  readonly policy: Policy
  readonly readEvents: ReadEvents
  /** By `nodeName`: the numbers of events that belong there, although nothing stored leads to them. */
  readonly leading: ReadonlyMap<string, ReadonlySet<number>>
  /** Rows of events that are not stored, by the `nodeName` of where they belong; each is returned once. */
  readonly unstored?: (names: readonly string[]) => Promise<readonly GroupRow[]>
}

/** Reads the groups of an environment that contain these seeds, together. */
export async function readGroup(
  db: Db,
  { policy, readEvents, leading, unstored = async () => [] }: GroupReader,
  environment: Environment,
  seeds: Seeds,
) {
  const own = <T extends { readonly environment: Environment }>(all: readonly T[] = []) =>
    all.filter((one) => one.environment === environment)
  const events = new Map<number, GroupEvent>()
  const sources = new Map<string, SourceRow>()
  const customerIds = new Set<string>()
  const stored = new Map<string, PaymentLink>()
  const linked = new Map(own(seeds.payments).map(({ id, link }) => [id, link]))
  const nodes = new Set<string>()
  let [newRows, newNodes]: [readonly GroupRow[], Node[]] = [own(seeds.rows), []]

  const add = (kind: Node['kind'], id: string | null): void => {
    if (id === null) return
    const name = nodeName(environment, kind, id)
    if (!nodes.has(name)) newNodes.push({ kind, id })
    nodes.add(name)
  }
  const addReading = (event: NormalizedEvent | null): void => {
    // A change by hand belongs to its customer, with or without a source.
    if (event?.subject === 'manual') add('customer', event.customerId)
    if (event?.subject !== 'payment' && event?.subject !== 'subscription') return
    add('customer', event.customerId)
    add('subscription', event.subscriptionId)
    add('link', event.paymentId)
  }
  /** @returns the numbers of their events */
  const addSources = (found: readonly SourceRow[]): number[] =>
    found.flatMap((row) => {
      const name = sourceKey({ kind: row.kind, id: row.source_id })
      if (sources.has(name)) return []
      sources.set(name, row)
      add(row.kind, row.source_id)
      add('customer', row.customer_id)
      return seqsInHistory(row.history) ?? []
    })
  for (const { kind, id } of own(seeds.sources)) add(kind, id)
  for (const id of linked.keys()) add('link', id)

  let derived = EMPTY
  let derivedOf = -1
  for (;;) {
    for (const event of await readEvents(db, newRows)) {
      events.set(event.row.seq, event)
      const place = placeOf(event.row)
      if (place !== null) add(place.kind, place.id)
      addReading(event.before)
      if (event.after !== event.before) addReading(event.after)
    }
    const fresh = newNodes
    newNodes = []
    const idsOf = (kind: Node['kind']) => fresh.filter((one) => one.kind === kind).map(({ id }) => id)
    const customers = idsOf('customer')
    for (const id of customers) customerIds.add(id)
    const payments = idsOf('link')
    const links = await loadLinks(db, environment, payments)
    for (const id of payments) {
      const link = links.get(id)
      if (link !== undefined) stored.set(id, link)
      add(link === undefined ? 'payment' : 'subscription', link?.subscriptionId ?? id)
    }
    const keys = fresh.filter((one): one is SourceKey => one.kind !== 'customer' && one.kind !== 'link')
    const unread = keys.filter((key) => !sources.has(sourceKey(key)))
    const seqs = [
      ...addSources(await loadSourceRowsOf(db, environment, customers)),
      ...addSources(await loadSourceRows(db, environment, unread)),
      ...(await loadSeqsByHand(db, environment, customers)),
      ...fresh.flatMap(({ kind, id }) => [...(leading.get(nodeName(environment, kind, id)) ?? [])]),
    ]
    const unknown = [...new Set(seqs)].filter((seq) => !events.has(seq)).sort((a, b) => a - b)
    const names = fresh.map(({ kind, id }) => nodeName(environment, kind, id))
    newRows = [...(await loadGroupRows(db, unknown)), ...(await unstored(names))]
    if (newRows.length + newNodes.length > 0) continue
    if (derivedOf !== events.size) {
      const arrived = [...events]
        .flatMap(([seq, { after }]) => (after === null ? [] : [{ seq, event: after }]))
        .sort((a, b) => a.seq - b.seq)
      const known = [...new Map([...stored, ...linked]).values()].filter((link) => link !== null)
      derived = derive(arrived, policy, known)
    }
    derivedOf = events.size
    for (const { state } of derived.sources.values()) {
      add(state.kind, state.id)
      add('customer', state.customerId)
    }
    if (newNodes.length === 0) break
  }

  const inOrder = [...events.values()].sort((a, b) => a.row.seq - b.row.seq)
  const byId = new Map(inOrder.map(({ after }) => [after?.id, after]))
  return {
    environment,
    events: inOrder,
    /** As stored, by `sourceKey`. */
    sources,
    customerIds,
    /** As stored, by payment. */
    links: stored,
    derived,
    /** Payments whose stored link counts although none of these events has it: another event may. */
    doubted: [...stored].flatMap(([id, link]) => {
      if (linked.has(id) || !isSameLink(link, derived.links.get(id))) return []
      const says = byId.get(link.linkedBy)
      return isSameLink(link, says && linkOf(says)) ? [] : [id]
    }),
  }
}

/** Whether a job covers all events, of these environments. */
export function isWhole(scope: JobScope['scope']): scope is readonly Environment[] {
  return Array.isArray(scope)
}

export type ReadEvents = ReturnType<typeof createEventReader>

/**
 * Reads stored events: again from their bytes if the job covers them, else as stored.
 * @param isDone null if nothing is written; what is written also includes events with a damaged stored form, and an
 * event that is done is stored as read
 */
export function createEventReader(
  { scope, endpoints, newest }: JobScope & { readonly newest: number },
  isDone: ((seq: number) => boolean) | null,
) {
  const taken: TakenIds = new Map()
  const isToRead = (row: GroupRow) =>
    !isWhole(scope) && row.seq <= newest && isDone?.(row.seq) !== true && matchesFilter(row, scope)
  /** @throws {LatchkeyError} `store_unavailable` if neither form nor body of an event can be read */
  return async (db: Db, rows: readonly GroupRow[]): Promise<readonly GroupEvent[]> => {
    const stored = rows.map((row) => ({
      row,
      before: row.normalized === null ? null : eventInFormIfReadable(row.normalized),
    }))
    const seqs = stored.flatMap(({ row, before }) =>
      isToRead(row) || (isDone !== null && row.normalized !== null && before === null) ? [row.seq] : [],
    )
    const again = await readAgain(db, seqs, endpoints ?? {}, taken)
    return stored.map(({ row, before }) => {
      const one = again.get(row.seq) ?? null
      if (one?.kind === 'read') return { row, before, after: one.event, again: one }
      if (before === null && row.normalized !== null) throw damagedForm(row.event_id)
      return { row, before, after: before, again: one }
    })
  }
}

export function isSameLink(a: PaymentLink, b: PaymentLink | null | undefined): boolean {
  return (
    a.paymentId === b?.paymentId &&
    a.subscriptionId === b.subscriptionId &&
    a.linkedAt === b.linkedAt &&
    a.linkedBy === b.linkedBy
  )
}
