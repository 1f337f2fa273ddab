import type { Transaction } from 'kysely'
import { type Derived, derive } from '../entitlements/derive.js'
import { seqsInHistory } from '../entitlements/history.js'
import type { SourceKey } from '../entitlements/model.js'
import type { Policy } from '../entitlements/policy.js'
import { linkOf, type PaymentLink, sourceKey } from '../entitlements/source-of.js'
import { isLatchkeyError, type LatchkeyError } from '../errors.js'
import type { Environment, NormalizedEvent } from '../provider/event.js'
import {
  type GroupRow,
  keyOfSource,
  loadGroupRows,
  loadSourceRows,
  loadSourceRowsOf,
  nameOfSource,
  type SourceRow,
} from '../store/group-rows.js'
import { loadLinks } from '../store/payment-links.js'
import type { Database } from '../store/schema.js'
import { eventInForm, eventsInForms } from '../store/stored-form.js'
import type { ReadAgain } from './read-again.js'

/** An event of a group, as it is stored and as it is read now. */
export interface GroupEvent {
  readonly row: GroupRow
  /** Null: it could not be used, or what it was read as can't be read any more. */
  readonly before: NormalizedEvent | null
  readonly after: NormalizedEvent | null
  /** Null: it was not meant to be read again. */
  readonly again: ReadAgain | null
  /** Names the event: nothing tells what it says. */
  readonly unreadable: LatchkeyError | null
}

/** Where a group begins. */
export interface Seeds {
  readonly rows?: readonly GroupRow[]
  readonly sources?: readonly SourceKey[]
  readonly customerIds?: readonly string[]
  readonly paymentIds?: readonly string[]
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

/** What a group is read with. */
export interface GroupTerms {
  readonly environment: Environment
  readonly policy: Policy
  /** Reads those again that are meant. */
  readonly readAgain: (rows: readonly GroupRow[]) => Promise<ReadonlyMap<number, ReadAgain>>
  /** By payment, what all events of the environment say; null: none links it. Of others, the stored links count. */
  readonly told: ReadonlyMap<string, PaymentLink | null>
  /** Numbers of events that lead to a source, payment or customer once they are read again, and not yet. */
  readonly leadingTo: (node: string) => Iterable<number>
}

export const sourceNode = (key: SourceKey): string => `source ${sourceKey(key)}`
export const paymentNode = (paymentId: string): string => `payment ${paymentId}`
export const customerNode = (customerId: string): string => `customer ${customerId}`

const EMPTY: Derived = { links: new Map(), places: new Map(), outcomes: new Map(), sources: new Map() }

/** Reads the group that these seeds are of, or the groups, together. */
export async function readGroup(trx: Transaction<Database>, seeds: Seeds, terms: GroupTerms): Promise<Group> {
  const { environment, policy, readAgain, told, leadingTo } = terms
  const events = new Map<number, GroupEvent>()
  const sources = new Map<string, SourceRow>()
  const links = new Map<string, PaymentLink>()
  /** By number, the source whose history names the event. */
  const listed = new Map<number, string>()
  const rows = frontier(({ seq }: GroupRow) => seq, seeds.rows)
  const keys = frontier(sourceKey, seeds.sources)
  const payments = frontier((id: string) => id, seeds.paymentIds)
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
    const again = await readAgain(found)
    for (const event of groupEvents(found, again)) {
      events.set(event.row.seq, event)
      const key = keyIn(event.row)
      if (key !== null) keys.add(key)
      if (event.before !== null) addReading(event.before)
      if (event.after !== null && event.after !== event.before) addReading(event.after)
    }
  }
  const addSources = (found: readonly SourceRow[]): number[] =>
    found.flatMap((row) => {
      const name = nameOfSource(row)
      if (sources.has(name)) return []
      sources.set(name, row)
      keys.add(keyOfSource(row))
      if (row.customer_id !== null) customers.add(row.customer_id)
      const seqs = seqsInHistory(row.history) ?? []
      for (const seq of seqs) listed.set(seq, name)
      return seqs
    })
  const addEvents = async (seqs: Iterable<number>): Promise<void> => {
    const unknown = [...new Set(seqs)].filter((seq) => !events.has(seq)).sort((a, b) => a - b)
    for (const row of await loadGroupRows(trx, unknown)) rows.add(row)
  }
  const ledTo = (nodes: readonly string[]): number[] => nodes.flatMap((node) => [...leadingTo(node)])

  let derived = EMPTY
  let derivedOf = -1
  for (;;) {
    const newRows = rows.take()
    if (newRows.length > 0) await addRows(newRows)
    const newCustomers = customers.take()
    const owned = addSources(await loadSourceRowsOf(trx, environment, newCustomers))
    const newPayments = payments.take()
    for (const [id, link] of await loadLinks(trx, environment, newPayments)) links.set(id, link)
    for (const id of newPayments) {
      const link = links.get(id)
      keys.add(
        link === undefined ? { kind: 'payment', id } : { kind: 'subscription', id: link.subscriptionId },
      )
    }
    const newKeys = keys.take()
    const missing = newKeys.filter((key) => !sources.has(sourceKey(key)))
    const named = addSources(await loadSourceRows(trx, environment, missing))
    await addEvents([
      ...owned,
      ...named,
      ...ledTo(newCustomers.map(customerNode)),
      ...ledTo(newPayments.map(paymentNode)),
      ...ledTo(newKeys.map(sourceNode)),
    ])
    if ([rows, customers, payments, keys].some(({ isEmpty }) => !isEmpty())) continue
    if (derivedOf !== events.size) derived = deriveFrom(events, links, told, policy)
    derivedOf = events.size
    for (const { state } of derived.sources.values()) {
      keys.add({ kind: state.kind, id: state.id })
      if (state.customerId !== null) customers.add(state.customerId)
    }
    if (keys.isEmpty() && customers.isEmpty()) break
  }

  const inOrder = [...events.values()].sort((a, b) => a.row.seq - b.row.seq)
  return {
    environment,
    events: inOrder,
    sources,
    customerIds: customers.known,
    links,
    derived,
    frozen: frozenIn(inOrder),
    doubted: doubtedAmong(links, told, inOrder, derived),
    isListed: inOrder.every(({ row }) => {
      const key = keyIn(row)
      return key === null || listed.get(row.seq) === sourceKey(key)
    }),
  }
}

/** What a group has so far, each thing once, and what of it has not been looked up yet. */
function frontier<T, Name>(nameOf: (one: T) => Name, first: readonly T[] = []) {
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

function groupEvents(
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
    const after = one.normalized.ok ? one.normalized.event : null
    return { row, before: stored.before, after, again: one, unreadable: null }
  })
}

function storedReading({
  normalized,
  event_id: eventId,
}: GroupRow): Pick<GroupEvent, 'before' | 'unreadable'> {
  try {
    return { before: eventInForm(String(normalized), eventId), unreadable: null }
  } catch (error) {
    if (!isLatchkeyError(error, 'store_unavailable')) throw error
    return { before: null, unreadable: error }
  }
}

function deriveFrom(
  events: ReadonlyMap<number, GroupEvent>,
  stored: ReadonlyMap<string, PaymentLink>,
  told: ReadonlyMap<string, PaymentLink | null>,
  policy: Policy,
): Derived {
  const arrived = [...events]
    .flatMap(([seq, { after }]) => (after === null ? [] : [{ seq, event: after }]))
    .sort((a, b) => a.seq - b.seq)
  const known = [...new Map([...stored, ...told]).values()].filter((link) => link !== null)
  return derive(arrived, policy, known)
}

function frozenIn(events: readonly GroupEvent[]): ReadonlySet<string> {
  return new Set(
    events.flatMap(({ row, unreadable }) => {
      const key = unreadable === null ? null : keyIn(row)
      return key === null ? [] : [sourceKey(key)]
    }),
  )
}

function doubtedAmong(
  links: ReadonlyMap<string, PaymentLink>,
  told: ReadonlyMap<string, PaymentLink | null>,
  events: readonly GroupEvent[],
  derived: Derived,
): readonly string[] {
  if (links.size === 0) return []
  const byId = new Map(events.map(({ after }) => [after?.id, after]))
  return [...links.values()].flatMap((link) => {
    if (told.has(link.paymentId) || !isSameLink(link, derived.links.get(link.paymentId))) return []
    const says = byId.get(link.linkedBy)
    return says && isSameLink(link, linkOf(says) ?? undefined) ? [] : [link.paymentId]
  })
}

export function isSameLink(a: PaymentLink | undefined, b: PaymentLink | undefined): boolean {
  if (a === undefined || b === undefined) return a === b
  return (
    a.paymentId === b.paymentId &&
    a.subscriptionId === b.subscriptionId &&
    a.linkedAt === b.linkedAt &&
    a.linkedBy === b.linkedBy
  )
}

export function keyIn({ source_kind: kind, source_id: id }: Pick<GroupRow, 'source_kind' | 'source_id'>) {
  return kind === null || id === null ? null : { kind, id }
}
