import type { Transaction } from 'kysely'
import { type Derived, derive } from '../entitlements/derive.js'
import { seqsInHistory } from '../entitlements/history.js'
import type { SourceKey } from '../entitlements/model.js'
import { linkOf, type PaymentLink, sourceKey } from '../entitlements/source-of.js'
import { isLatchkeyError, type LatchkeyError } from '../errors.js'
import type { Environment, NormalizedEvent } from '../provider/event.js'
import { matchesFilter } from '../store/event-walk.js'
import type { JobScope } from '../store/recompute-job.js'
import {
  type GroupRow,
  loadGroupRows,
  loadSourceRows,
  loadSourceRowsOf,
  placeOf,
  type SourceRow,
} from '../store/recompute-rows.js'
import type { Database } from '../store/schema.js'
import { loadLinks } from '../store/sources.js'
import { eventInForm, eventsInForms } from '../store/stored-form.js'
import { type ReadAgain, readAgain } from './read-again.js'
import { isDone, nodeName, type Run } from './run.js'

/** An event of a group, as it is stored and as it is read now. */
export interface GroupEvent {
  readonly row: GroupRow
  /** Null: it could not be used, or what it was read as can't be read any more. */
  readonly before: NormalizedEvent | null
  readonly after: NormalizedEvent | null
  /** Null: it was not to be read again. */
  readonly again: ReadAgain | null
  /** Names the event: nothing tells what it says. */
  readonly unreadable: LatchkeyError | null
}

/** Where a group begins. */
export interface Seeds {
  readonly rows?: readonly GroupRow[]
  readonly sources?: readonly SourceKey[]
  readonly customerIds?: readonly string[]
  /** With what all events of the environment say of these payments; null: none links it. */
  readonly links?: ReadonlyMap<string, PaymentLink | null>
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

/** Reads the group that these seeds are of, or the groups, together. */
export async function readGroup(
  trx: Transaction<Database>,
  run: Run,
  environment: Environment,
  seeds: Seeds,
): Promise<Group> {
  const events = new Map<number, GroupEvent>()
  const sources = new Map<string, SourceRow>()
  const stored = new Map<string, PaymentLink>()
  const known = seeds.links ?? new Map<string, PaymentLink | null>()
  /** By number, the source whose history names the event. */
  const listed = new Map<number, string>()
  const rows = frontier(({ seq }: GroupRow) => seq, seeds.rows)
  const keys = frontier(sourceKey, seeds.sources)
  const payments = frontier((id: string) => id, known.keys())
  const customers = frontier((id: string) => id, seeds.customerIds)

  const addReading = (event: NormalizedEvent): void => {
    // What was done by hand belongs to its customer, be it to a source of theirs or to none.
    if (event.subject === 'manual') customers.add(event.customerId)
    if (event.subject !== 'payment' && event.subject !== 'subscription') return
    if (event.customerId !== null) customers.add(event.customerId)
    if (event.subscriptionId !== null) keys.add({ kind: 'subscription', id: event.subscriptionId })
    if (event.paymentId !== null) payments.add(event.paymentId)
  }
  const addRows = async (found: readonly GroupRow[]): Promise<void> => {
    const again = await readRows(trx, run, environment, found)
    for (const event of groupEvents(found, again)) {
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
    const newRows = rows.take()
    if (newRows.length > 0) await addRows(newRows)
    const newCustomers = customers.take()
    const owned = addSources(await loadSourceRowsOf(trx, environment, newCustomers))
    const newPayments = payments.take()
    for (const [id, link] of await loadLinks(trx, environment, newPayments)) stored.set(id, link)
    for (const id of newPayments) {
      const link = stored.get(id)
      keys.add(
        link === undefined ? { kind: 'payment', id } : { kind: 'subscription', id: link.subscriptionId },
      )
    }
    const newKeys = keys.take()
    const missing = newKeys.filter((key) => !sources.has(sourceKey(key)))
    const named = addSources(await loadSourceRows(trx, environment, missing))
    const led = [
      ...leadingTo('customer', newCustomers),
      ...leadingTo('payment', newPayments),
      ...newKeys.flatMap(({ kind, id }) => leadingTo(kind, [id])),
    ]
    const unknown = [...new Set([...owned, ...named, ...led])].filter((seq) => !events.has(seq))
    for (const row of await loadGroupRows(
      trx,
      unknown.sort((a, b) => a - b),
    ))
      rows.add(row)
    if ([rows, customers, payments, keys].some(({ isEmpty }) => !isEmpty())) continue
    if (derivedOf !== events.size) derived = deriveFrom(events, [...stored, ...known], run)
    derivedOf = events.size
    for (const { state } of derived.sources.values()) {
      keys.add({ kind: state.kind, id: state.id })
      if (state.customerId !== null) customers.add(state.customerId)
    }
    if (keys.isEmpty() && customers.isEmpty()) break
  }

  const inOrder = [...events.values()].sort((a, b) => a.row.seq - b.row.seq)
  const places = inOrder.map(({ row }) => nameOfPlace(row))
  return {
    environment,
    events: inOrder,
    sources,
    customerIds: customers.known,
    links: stored,
    derived,
    frozen: new Set(inOrder.flatMap(({ unreadable }, i) => (unreadable && places[i]) || [])),
    doubted: doubtedAmong(
      [...stored.values()].filter(({ paymentId }) => !known.has(paymentId)),
      inOrder,
      derived,
    ),
    isListed: inOrder.every(({ row }, i) => places[i] === null || listed.get(row.seq) === places[i]),
  }
}

/** What a group has so far, each thing once, and what of it has not been looked up yet. */
function frontier<T, Name>(nameOf: (one: T) => Name, first: Iterable<T> = []) {
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
export async function readRows(
  trx: Transaction<Database>,
  run: Run,
  environment: Environment,
  rows: readonly GroupRow[],
): Promise<ReadonlyMap<number, ReadAgain>> {
  const { scope, endpoints, newest } = run.job
  if (endpoints === null) return new Map()
  const meant = rows.filter(
    (row) =>
      row.seq <= newest &&
      // Once it is written, it is stored as it is read.
      !(run.mode === 'apply' && isDone(run, row.seq)) &&
      (isWhole(scope) ? scope.includes(row.environment) : matchesFilter(row, scope)),
  )
  const seqs = meant.map(({ seq }) => seq)
  return readAgain(trx, environment, seqs, endpoints, run.taken)
}

/** Whether all events are meant, of these environments. */
export function isWhole(scope: JobScope['scope']): scope is readonly Environment[] {
  return Array.isArray(scope)
}

/** @param again by number, those that were read again */
export function groupEvents(
  rows: readonly GroupRow[],
  again: ReadonlyMap<number, ReadAgain>,
): readonly GroupEvent[] {
  const forms = rows.flatMap(({ normalized }) => normalized ?? [])
  const read = eventsInForms(forms.join(','), forms.length)
  let i = 0
  return rows.map((row) => {
    const form = row.normalized === null ? null : (read?.[i++] ?? null)
    const stored =
      row.normalized === null || form !== null ? { before: form, unreadable: null } : storedReading(row)
    const one = again.get(row.seq) ?? null
    if (one?.kind !== 'read') return { row, ...stored, after: stored.before, again: one }
    return { row, before: stored.before, after: one.event, again: one, unreadable: null }
  })
}

function storedReading({ normalized, event_id: eventId }: GroupRow) {
  try {
    return { before: eventInForm(String(normalized), eventId), unreadable: null }
  } catch (error) {
    if (!isLatchkeyError(error, 'store_unavailable')) throw error
    return { before: null, unreadable: error }
  }
}

function nameOfPlace(row: GroupRow): string | null {
  const key = placeOf(row)
  return key === null ? null : sourceKey(key)
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

function doubtedAmong(
  links: readonly PaymentLink[],
  events: readonly GroupEvent[],
  derived: Derived,
): readonly string[] {
  if (links.length === 0) return []
  const byId = new Map(events.map(({ after }) => [after?.id, after]))
  return links.flatMap((link) => {
    if (!isSameLink(link, derived.links.get(link.paymentId))) return []
    const says = byId.get(link.linkedBy)
    return says && isSameLink(link, linkOf(says) ?? undefined) ? [] : [link.paymentId]
  })
}

export function isSameLink(a: PaymentLink | undefined, b: PaymentLink | undefined): boolean {
  return (
    a?.paymentId === b?.paymentId &&
    a?.subscriptionId === b?.subscriptionId &&
    a?.linkedAt === b?.linkedAt &&
    a?.linkedBy === b?.linkedBy
  )
}
