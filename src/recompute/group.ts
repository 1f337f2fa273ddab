import type { Transaction } from 'kysely'
import { type Derived, derive } from '../entitlements/derive.js'
import { seqsInHistory } from '../entitlements/history.js'
import type { SourceKey } from '../entitlements/model.js'
import { linkOf, type PaymentLink, sourceKey } from '../entitlements/source-of.js'
import type { Environment, NormalizedEvent } from '../provider/event.js'
import { matchesFilter } from '../store/event-walk.js'
import {
  type CustomerKey,
  type GroupRow,
  loadGroupRows,
  loadSeqsByHand,
  loadSourceRows,
  loadSourceRowsOf,
  placeOf,
  type SourceRow,
} from '../store/recompute-rows.js'
import type { Database } from '../store/schema.js'
import { loadLinks } from '../store/sources.js'
import { eventInFormIfReadable, eventsInForms } from '../store/stored-form.js'
import { type ReadAgain, readAgain } from './read-again.js'
import { isDone, isWhole, nodeName, type Run } from './run.js'

/** An event of a group, as it is stored and as it is read now. */
export interface GroupEvent {
  readonly row: GroupRow
  /** Null: it could not be used, or what it was read as can't be read any more. */
  readonly before: NormalizedEvent | null
  readonly after: NormalizedEvent | null
  /** Null: it was not to be read again. */
  readonly again: ReadAgain | null
  /** Whether nothing tells what it says. */
  readonly isUnreadable: boolean
}

/** Where groups begin. */
export interface Seeds {
  readonly rows?: readonly GroupRow[]
  readonly sources?: readonly (SourceKey & { readonly environment: Environment })[]
  readonly customers?: readonly CustomerKey[]
  /** With what all events of the environment say of each; null: none links it. */
  readonly payments?: readonly {
    readonly environment: Environment
    readonly id: string
    readonly link: PaymentLink | null
  }[]
}

/**
 * Sources that belong together, whole: no event, link or customer of them leads to a source that is not among them, as
 * they are stored or as they are to be.
 */
export interface Group {
  readonly environment: Environment
  /** In the order of arrival. */
  readonly events: readonly GroupEvent[]
  /** As they are stored, by `sourceKey`. */
  readonly sources: ReadonlyMap<string, SourceRow>
  readonly customerIds: ReadonlySet<string>
  /** As they are stored, by payment. */
  readonly links: ReadonlyMap<string, PaymentLink>
  readonly derived: Derived
  /** By `sourceKey`: sources with an event that can't be read. They stay as they are. */
  readonly frozen: ReadonlySet<string>
  /** Payments of which the stored link counts, though none of these events says so: one elsewhere may. */
  readonly doubted: readonly string[]
  /** Whether the history of each source names all of its events: otherwise it may have others. */
  readonly isListed: boolean
}

const EMPTY: Derived = { links: new Map(), places: new Map(), outcomes: new Map(), sources: new Map() }

/** Reads the groups of an environment that these seeds are of, together. */
export async function readGroup(
  trx: Transaction<Database>,
  run: Run,
  environment: Environment,
  seeds: Seeds,
): Promise<Group> {
  const own = <T extends { readonly environment: Environment }>(all: readonly T[] = []) =>
    all.filter((one) => one.environment === environment)
  const events = new Map<number, GroupEvent>()
  const sources = new Map<string, SourceRow>()
  const stored = new Map<string, PaymentLink>()
  const linked = new Map(own(seeds.payments).map(({ id, link }) => [id, link]))
  /** By number, the source whose history names the event. */
  const listed = new Map<number, string>()
  const rows = frontier(({ seq }: GroupRow) => seq, own(seeds.rows))
  const keys = frontier<SourceKey, string>(sourceKey, own(seeds.sources))
  const payments = frontier(String, linked.keys())
  const customers = frontier(
    String,
    own(seeds.customers).map(({ customerId }) => customerId),
  )

  const addReading = (event: NormalizedEvent): void => {
    // What was done by hand belongs to its customer, be it to a source of theirs or to none.
    if (event.subject === 'manual') customers.add(event.customerId)
    if (event.subject !== 'payment' && event.subject !== 'subscription') return
    if (event.customerId !== null) customers.add(event.customerId)
    if (event.subscriptionId !== null) keys.add({ kind: 'subscription', id: event.subscriptionId })
    if (event.paymentId !== null) payments.add(event.paymentId)
  }
  const addRows = async (found: readonly GroupRow[]): Promise<void> => {
    for (const event of groupEvents(found, await readRows(trx, run, found))) {
      events.set(event.row.seq, event)
      const key = placeOf(event.row)
      if (key !== null) keys.add(key)
      if (event.before !== null) addReading(event.before)
      if (event.after !== null && event.after !== event.before) addReading(event.after)
    }
  }
  /** @returns the numbers of their events */
  const addSources = (found: readonly SourceRow[]): number[] =>
    found.flatMap((row) => {
      const key = { kind: row.kind, id: row.source_id }
      const name = sourceKey(key)
      if (sources.has(name)) return []
      sources.set(name, row)
      keys.add(key)
      if (row.customer_id !== null) customers.add(row.customer_id)
      const seqs = seqsInHistory(row.history) ?? []
      for (const seq of seqs) listed.set(seq, name)
      return seqs
    })
  const leadingTo = (kind: string, ids: readonly string[]): number[] =>
    run.leading.size === 0
      ? []
      : ids.flatMap((id) => [...(run.leading.get(nodeName(environment, { kind, id })) ?? [])])

  let derived = EMPTY
  let derivedOf = -1
  for (;;) {
    await addRows(rows.take())
    const newCustomers = customers.take()
    const owned = addSources(await loadSourceRowsOf(trx, environment, newCustomers))
    const byHand = await loadSeqsByHand(trx, environment, newCustomers)
    const newPayments = payments.take()
    const links = await loadLinks(trx, environment, newPayments)
    for (const id of newPayments) {
      const link = links.get(id)
      if (link !== undefined) stored.set(id, link)
      keys.add(link ? { kind: 'subscription', id: link.subscriptionId } : { kind: 'payment', id })
    }
    const newKeys = keys.take()
    const missing = newKeys.filter((key) => !sources.has(sourceKey(key)))
    const named = addSources(await loadSourceRows(trx, environment, missing))
    const led = [
      ...leadingTo('customer', newCustomers),
      ...leadingTo('payment', newPayments),
      ...newKeys.flatMap(({ kind, id }) => leadingTo(kind, [id])),
    ]
    const unknown = [...owned, ...byHand, ...named, ...led].filter((seq) => !events.has(seq))
    const inOrder = [...new Set(unknown)].sort((a, b) => a - b)
    for (const row of await loadGroupRows(trx, inOrder)) rows.add(row)
    if ([rows, customers, payments, keys].some(({ isEmpty }) => !isEmpty())) continue
    if (derivedOf !== events.size) derived = deriveFrom(events, [...stored, ...linked], run)
    derivedOf = events.size
    for (const { state } of derived.sources.values()) {
      keys.add({ kind: state.kind, id: state.id })
      if (state.customerId !== null) customers.add(state.customerId)
    }
    if (keys.isEmpty() && customers.isEmpty()) break
  }

  const inOrder = [...events.values()].sort((a, b) => a.row.seq - b.row.seq)
  const byId = new Map(inOrder.map(({ after }) => [after?.id, after]))
  const places = inOrder.map(({ row }) => placeOf(row)).map((key) => key && sourceKey(key))
  return {
    environment,
    events: inOrder,
    sources,
    customerIds: customers.known,
    links: stored,
    derived,
    frozen: new Set(places.filter((name, i) => name !== null && inOrder[i]?.isUnreadable)) as Set<string>,
    doubted: [...stored].flatMap(([id, link]) => {
      if (linked.has(id) || !isSameLink(link, derived.links.get(id))) return []
      const says = byId.get(link.linkedBy)
      return isSameLink(link, says && linkOf(says)) ? [] : [id]
    }),
    isListed: inOrder.every(({ row }, i) => places[i] === null || listed.get(row.seq) === places[i]),
  }
}

/** What a group has so far, each thing once, and what of it has not been looked up yet. */
function frontier<T, Name>(nameOf: (one: T) => Name, first: Iterable<T>) {
  const known = new Set<Name>()
  let waiting: T[] = []
  const add = (one: T): void => {
    const name = nameOf(one)
    if (known.has(name)) return
    known.add(name)
    waiting.push(one)
  }
  for (const one of first) add(one)
  return {
    known,
    add,
    isEmpty: () => waiting.length === 0,
    take(): readonly T[] {
      const taken = waiting
      waiting = []
      return taken
    },
  }
}

/** Reads those again that the job is to. */
export function readRows(
  trx: Transaction<Database>,
  run: Run,
  rows: readonly GroupRow[],
): Promise<ReadonlyMap<number, ReadAgain>> {
  const { scope, endpoints, newest } = run.job
  const isToRead = (row: GroupRow): boolean =>
    row.seq <= newest &&
    // Once it is written, it is stored as it is read.
    !(run.mode === 'apply' && isDone(run, row.seq)) &&
    (isWhole(scope) ? scope.includes(row.environment) : matchesFilter(row, scope))
  const seqs = endpoints === null ? [] : rows.filter(isToRead).map(({ seq }) => seq)
  return readAgain(trx, seqs, endpoints ?? {}, run.taken)
}

/** @param again by number, those that were read again */
export function groupEvents(
  rows: readonly GroupRow[],
  again: ReadonlyMap<number, ReadAgain>,
): readonly GroupEvent[] {
  const forms = rows.flatMap(({ normalized }) => normalized ?? [])
  const read = eventsInForms(forms.join(','), forms.length) ?? forms.map(eventInFormIfReadable)
  let i = 0
  return rows.map((row) => {
    const before = row.normalized === null ? null : (read[i++] ?? null)
    const one = again.get(row.seq) ?? null
    if (one?.kind === 'read') return { row, before, after: one.event, again: one, isUnreadable: false }
    const isUnreadable = before === null && row.normalized !== null
    return { row, before, after: before, again: one, isUnreadable }
  })
}

function deriveFrom(
  events: ReadonlyMap<number, GroupEvent>,
  links: readonly (readonly [string, PaymentLink | null])[],
  { job: { policy } }: Run,
): Derived {
  const arrived = [...events]
    .flatMap(([seq, { after }]) => (after === null ? [] : [{ seq, event: after }]))
    .sort((a, b) => a.seq - b.seq)
  const known = [...new Map(links).values()].filter((link) => link !== null)
  return derive(arrived, policy, known)
}

export function isSameLink(a: PaymentLink, b: PaymentLink | null | undefined): boolean {
  return (
    a.paymentId === b?.paymentId &&
    a.subscriptionId === b.subscriptionId &&
    a.linkedAt === b.linkedAt &&
    a.linkedBy === b.linkedBy
  )
}
