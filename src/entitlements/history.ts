/* The history in a source's row: the fields of its events that the rules read, as text. */

import type { NormalizedEvent, RailProof } from '../provider/event.js'
import { type FoldableEvent, isGrantAct, KEPT, type KeptSubscription, TYPES, TYPES_OF } from './model.js'

/** The fields of a stored event that the rules read, and its number in the order of arrival. */
export type HistoryEvent = FoldableEvent & { readonly seq: number }

/** Null: events of this kind belong to no source. */
export function historyEvent(seq: number, event: NormalizedEvent): HistoryEvent | null {
  const { subject, id, type, createdAt, customerId, productId } = event
  if (subject === 'customer' || subject === 'other' || (subject === 'manual' && !isGrantAct(event)))
    return null
  const kept: Record<string, unknown> = { seq, id, subject, type, createdAt, customerId, productId }
  for (const { name } of COLUMNS[subject]) kept[name] = event[name as keyof typeof event]
  return kept as unknown as HistoryEvent
}

/*
 * A history is the events of one source in the order of arrival, as a JSON array with one array per event:
 *
 *     [seq, id, code of the type, createdAt, customerId, productId, ...the fields in KEPT]
 *
 * Nulls at its end are left out, so that a new field does not change the text of earlier events.
 */

/** Means the customer or product of the previous event: most events of a source name the same ones. */
const SAME = 0
const OWN_FIELDS_FROM = 6

interface Column {
  readonly name: string
  /** Both are omitted for values that are stored as they are; null is always stored as it is. */
  readonly write?: (value: never) => unknown
  /** Undefined for a value that `write` never makes. */
  readonly read?: (stored: never) => unknown
}

const PROOFS = new Map(
  ([1, 2, 3] as const).flatMap((strength): readonly (readonly [number, RailProof])[] => [
    [strength, { rail: 'card', strength }],
    [-strength, { rail: 'crypto', strength }],
  ]),
)

/** The fields that would be much longer as they are. */
const SHORTENED: Readonly<Partial<Record<string, Omit<Column, 'name'>>>> = {
  railProof: {
    write: ({ rail, strength }: RailProof) => (rail === 'card' ? strength : -strength),
    read: (stored: number) => PROOFS.get(stored),
  },
  cycles: {
    write: ({ current, total }: NonNullable<KeptSubscription['cycles']>) => [current, total],
    read: ([current, total]: readonly (number | null)[]) => ({ current, total }),
  },
}

const columnsOf = (names: readonly string[]): readonly Column[] =>
  names.map((name) => ({ name, ...SHORTENED[name] }))
const COLUMNS = {
  payment: columnsOf(KEPT.payment),
  subscription: columnsOf(KEPT.subscription),
  manual: columnsOf(KEPT.manual),
}

const TYPE_OF_CODE = new Map(
  (['payment', 'subscription', 'manual'] as const).flatMap((subject) =>
    Object.entries(TYPES_OF[subject]).map(
      ([type, { code }]) => [code, { type, subject, columns: COLUMNS[subject] }] as const,
    ),
  ),
)

/** @param events in the order of arrival */
export function packHistory(events: readonly HistoryEvent[]): string {
  return extendHistory('[]', [], events)
}

/**
 * Same result as packing all of them.
 * @param stored the unpacked history
 * @param added events that arrived later, in order
 */
export function extendHistory(
  history: string,
  stored: readonly HistoryEvent[],
  added: readonly HistoryEvent[],
): string {
  if (added.length === 0) return history
  const rows = added.map((event, i) => rowOf(event, i === 0 ? stored.at(-1) : added[i - 1]))
  return `${history.slice(0, -1)}${stored.length === 0 ? '' : ','}${JSON.stringify(rows).slice(1)}`
}

function rowOf(event: HistoryEvent, before: HistoryEvent | undefined): readonly unknown[] {
  const { seq, id, type, createdAt, customerId, productId } = event
  const customer = customerId === before?.customerId ? SAME : customerId
  const product = productId === before?.productId ? SAME : productId
  const row: unknown[] = [seq, id, TYPES[type].code, createdAt, customer, product]
  let length = row.length
  for (const { name, write } of COLUMNS[event.subject]) {
    const value = event[name as keyof HistoryEvent]
    row.push(write === undefined || value === null ? value : write(value as never))
    if (value !== null) length = row.length
  }
  row.length = length
  return row
}

/** Null if the text is not a history. */
export function unpackHistory(history: string): HistoryEvent[] | null {
  try {
    const events: HistoryEvent[] = []
    let before: HistoryEvent | undefined
    for (const row of JSON.parse(history)) {
      before = eventIn(row, before)
      if (before === undefined) return null
      events.push(before)
    }
    return events
  } catch {
    return null
  }
}

/** Only the numbers of its events; null if the text is not a history. */
export function seqsInHistory(history: string): readonly number[] | null {
  try {
    const seqs = JSON.parse(history).map(([seq]: readonly unknown[]) => seq)
    return seqs.every(Number.isSafeInteger) ? seqs : null
  } catch {
    return null
  }
}

/** Undefined if the row is not that of an event. */
function eventIn(row: readonly unknown[], before: HistoryEvent | undefined): HistoryEvent | undefined {
  const [seq, id, code, createdAt, customer = null, product = null] = row
  const known = TYPE_OF_CODE.get(code as string)
  if (known === undefined || typeof id !== 'string') return undefined
  if (!Number.isSafeInteger(seq) || !Number.isSafeInteger(createdAt)) return undefined
  const customerId = customer === SAME ? before?.customerId : customer
  const productId = product === SAME ? before?.productId : product
  const { type, subject, columns } = known
  if (subject === 'manual' && (customerId === null || productId === null)) return undefined
  const event: Record<string, unknown> = { seq, id, subject, type, createdAt, customerId, productId }
  let place = OWN_FIELDS_FROM
  for (const { name, read } of columns) {
    const stored = row[place++] ?? null
    const value = read === undefined || stored === null ? stored : read(stored as never)
    if (value === undefined) return undefined
    event[name] = value
  }
  return event as unknown as HistoryEvent
}
