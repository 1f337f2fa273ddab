import type { Transaction } from 'kysely'
import { type Derived, derive } from '../entitlements/derive.js'
import type { SourceKey } from '../entitlements/model.js'
import type { Policy } from '../entitlements/policy.js'
import { linkOf, type PaymentLink, sourceKey } from '../entitlements/source-of.js'
import { isLatchkeyError, type LatchkeyError } from '../errors.js'
import type { Environment, NormalizedEvent } from '../provider/event.js'
import {
  type GroupRow,
  loadGroupRows,
  loadGroupRowsOf,
  loadSourceKeysOf,
  loadSourceRows,
  nameOfSource,
  type SourceRow,
} from '../store/group-rows.js'
import { loadLinks } from '../store/payment-links.js'
import type { Database } from '../store/schema.js'
import { eventInForm } from '../store/stored-form.js'
import type { NotRead, ReadAgain } from './read-again.js'

/** An event of a group, as it is stored and as it is read now. */
export interface GroupEvent {
  readonly row: GroupRow
  /** Null: it could not be used, or what it was read as can't be read any more. */
  readonly before: NormalizedEvent | null
  readonly after: NormalizedEvent | null
  /** Null: it was not meant to be read again. */
  readonly again: ReadAgain | { readonly kind: NotRead } | null
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
}

/** What a group is read with. */
export interface GroupTerms {
  readonly environment: Environment
  readonly policy: Policy
  /** Reads those again that are meant. */
  readonly readAgain: (
    rows: readonly GroupRow[],
  ) => Promise<ReadonlyMap<number, ReadAgain | { kind: NotRead }>>
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
  const keys = new Set<string>()
  const payments = new Set<string>()
  const customers = new Set<string>()
  let newRows = [...(seeds.rows ?? [])]
  let newSources: SourceKey[] = []
  let newPayments: string[] = []
  let newCustomers: string[] = []

  const addSource = (key: SourceKey | null): void => {
    if (key === null || keys.has(sourceKey(key))) return
    keys.add(sourceKey(key))
    newSources.push(key)
  }
  const addPayment = (paymentId: string): void => {
    if (payments.has(paymentId)) return
    payments.add(paymentId)
    newPayments.push(paymentId)
  }
  const addCustomer = (customerId: string | null): void => {
    if (customerId === null || customers.has(customerId)) return
    customers.add(customerId)
    newCustomers.push(customerId)
  }
  const addReading = (event: NormalizedEvent): void => {
    // What was done by hand belongs to its customer, be it to a source of theirs or to none.
    if (event.subject === 'manual') addCustomer(event.customerId)
    if (event.subject !== 'payment' && event.subject !== 'subscription') return
    if (event.subscriptionId !== null) addSource({ kind: 'subscription', id: event.subscriptionId })
    if (event.paymentId !== null) addPayment(event.paymentId)
  }
  const addRows = async (rows: readonly GroupRow[]): Promise<void> => {
    const fresh = new Map(rows.filter(({ seq }) => !events.has(seq)).map((row) => [row.seq, row]))
    const read = await readAgain([...fresh.values()])
    for (const row of fresh.values()) {
      const event = readingsOf(row, read.get(row.seq) ?? null)
      events.set(row.seq, event)
      addSource(keyIn(row))
      if (event.before !== null) addReading(event.before)
      if (event.after !== null && event.after !== event.before) addReading(event.after)
    }
  }
  const addSourceRows = (rows: readonly SourceRow[]): void => {
    for (const row of rows) {
      sources.set(nameOfSource(row), row)
      addCustomer(row.customer_id)
    }
  }
  const ledTo = (nodes: readonly string[]): Promise<readonly GroupRow[]> => {
    const seqs = new Set(nodes.flatMap((node) => [...leadingTo(node)]))
    return loadGroupRows(
      trx,
      [...seqs].filter((seq) => !events.has(seq)),
    )
  }

  for (const key of seeds.sources ?? []) addSource(key)
  for (const id of seeds.paymentIds ?? []) addPayment(id)
  for (const id of seeds.customerIds ?? []) addCustomer(id)
  let derived = EMPTY
  let derivedOf = -1
  for (;;) {
    if (newRows.length > 0) {
      const rows = newRows
      newRows = []
      await addRows(rows)
    } else if (newPayments.length > 0) {
      const ids = newPayments
      newPayments = []
      for (const [id, link] of await loadLinks(trx, environment, ids)) links.set(id, link)
      for (const id of ids) {
        const link = links.get(id)
        addSource(
          link === undefined ? { kind: 'payment', id } : { kind: 'subscription', id: link.subscriptionId },
        )
      }
      newRows = [...(await ledTo(ids.map(paymentNode)))]
    } else if (newSources.length > 0) {
      const found = newSources
      newSources = []
      const rows = await loadGroupRowsOf(trx, environment, found)
      addSourceRows(await loadSourceRows(trx, environment, found))
      newRows = [...rows, ...(await ledTo(found.map(sourceNode)))]
    } else if (newCustomers.length > 0) {
      const ids = newCustomers
      newCustomers = []
      for (const key of await loadSourceKeysOf(trx, environment, ids)) addSource(key)
      newRows = [...(await ledTo(ids.map(customerNode)))]
    } else {
      if (derivedOf !== events.size) derived = deriveFrom(events, links, told, policy)
      derivedOf = events.size
      for (const { state } of derived.sources.values()) {
        addSource({ kind: state.kind, id: state.id })
        addCustomer(state.customerId)
      }
      if (newCustomers.length + newSources.length === 0) break
    }
  }

  const inOrder = [...events.values()].sort((a, b) => a.row.seq - b.row.seq)
  return {
    environment,
    events: inOrder,
    sources,
    customerIds: customers,
    links,
    derived,
    frozen: frozenIn(inOrder),
    doubted: doubtedAmong(links, told, inOrder, derived),
  }
}

function readingsOf(row: GroupRow, again: GroupEvent['again']): GroupEvent {
  const { before, unreadable } = storedReading(row)
  if (again?.kind !== 'read') return { row, before, after: before, again, unreadable }
  const after = again.normalized.ok ? again.normalized.event : null
  return { row, before, after, again, unreadable: null }
}

function storedReading({
  normalized,
  event_id: eventId,
}: GroupRow): Pick<GroupEvent, 'before' | 'unreadable'> {
  if (normalized === null) return { before: null, unreadable: null }
  try {
    return { before: eventInForm(normalized, eventId), unreadable: null }
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
