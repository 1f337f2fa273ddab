/* The history in a source's row: the fields of its events that the rules read, packed as text. */

import type { NormalizedEvent, ProvenRail, RailProof } from '../provider/event.js'
import {
  type FoldableEvent,
  isGrantAct,
  type KeptSubscription,
  MANUAL_TYPES,
  PAYMENT_TYPES,
  SUBSCRIPTION_TYPES,
  TYPES,
} from './kept-event.js'

/** The fields of a stored event that the rules read, and its number in the order of arrival. */
export type HistoryEvent = FoldableEvent & { readonly seq: number }

/** Null: events of this kind belong to no source. */
export function historyEvent(seq: number, event: NormalizedEvent): HistoryEvent | null {
  const { id, createdAt, customerId, productId } = event
  switch (event.subject) {
    case 'payment': {
      const { subject, type, paymentId, railProof } = event
      return { seq, id, subject, type, createdAt, customerId, productId, paymentId, railProof }
    }
    case 'subscription':
      return {
        seq,
        id,
        subject: event.subject,
        type: event.type,
        createdAt,
        customerId,
        productId,
        paymentId: event.paymentId,
        status: event.status,
        cycles: event.cycles,
        cancelAtPeriodEnd: event.cancelAtPeriodEnd,
        expiresAt: event.expiresAt,
      }
    case 'manual': {
      if (!isGrantAct(event)) return null
      const { subject, type, customerId: whose, productId: what, until } = event
      return { seq, id, subject, type, createdAt, customerId: whose, productId: what, until }
    }
    case 'customer':
    case 'other':
      return null
    default:
      return event satisfies never
  }
}

/*
 * A history is the events of one source in the order of arrival, as text that is shorter than JSON: a line with the
 * version, then a line per event, with tabs between its fields. Ids contain no control characters and are never empty:
 * an empty field is null. All events begin alike:
 *
 *     seq  id  type  createdAt  customerId  productId
 *
 * A payment continues with `paymentId railProof`, a subscription with
 * `paymentId status cycles cancelAtPeriodEnd expiresAt`, and a grant by hand with `until`.
 */

/** Raise it when the format changes: a rebuild then writes every history again, from the events. */
const VERSION = '1'

/** Means the customer or product of the previous line: most events of a source name the same ones. */
const SAME = '\u0001'

const PAYMENT_CODES = typesByCode(PAYMENT_TYPES)
const SUBSCRIPTION_CODES = typesByCode(SUBSCRIPTION_TYPES)
const GRANT_CODES = typesByCode(MANUAL_TYPES)

function typesByCode<Type extends string>(types: Readonly<Record<Type, { readonly code: string }>>) {
  return new Map((Object.keys(types) as Type[]).map((type) => [types[type].code, type]))
}

const RAIL_CODES: Readonly<Record<ProvenRail, string>> = { card: 'c', crypto: 'x' }

const PROOFS: ReadonlyMap<string, RailProof> = new Map(
  (['card', 'crypto'] as const).flatMap((rail) =>
    ([1, 2, 3] as const).map((strength) => [`${RAIL_CODES[rail]}${strength}`, { rail, strength }] as const),
  ),
)

/** @param events in the order of arrival */
export function packHistory(events: readonly HistoryEvent[]): string {
  return extendHistory(VERSION, [], events)
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
  let text = history
  let before = stored.at(-1)
  for (const event of added) {
    const { seq, id, type, createdAt } = event
    const customer = idField(event.customerId, before?.customerId)
    const product = idField(event.productId, before?.productId)
    text += `\n${seq}\t${id}\t${TYPES[type].code}\t${createdAt}\t${customer}\t${product}\t${ownFields(event)}`
    before = event
  }
  return text
}

function idField(id: string | null, before: string | null | undefined): string {
  return id === null ? '' : id === before ? SAME : id
}

function ownFields(event: HistoryEvent): string {
  switch (event.subject) {
    case 'payment': {
      const { paymentId, railProof } = event
      return `${paymentId ?? ''}\t${railProof === null ? '' : RAIL_CODES[railProof.rail] + railProof.strength}`
    }
    case 'subscription': {
      const { paymentId, status, cycles, cancelAtPeriodEnd, expiresAt } = event
      const cycle = cycles === null ? '' : `${cycles.current ?? ''}/${cycles.total ?? ''}`
      const cancels = cancelAtPeriodEnd === null ? '' : Number(cancelAtPeriodEnd)
      return `${paymentId ?? ''}\t${statusField(status)}\t${cycle}\t${cancels}\t${expiresAt ?? ''}`
    }
    case 'manual':
      return `${event.until ?? ''}`
    default:
      return event satisfies never
  }
}

/** Documented statuses are plain words; an import may contain any text. */
const PLAIN_WORD = /^[a-z_]+$/

function statusField(status: string | null): string {
  if (status === null) return ''
  return PLAIN_WORD.test(status) ? status : JSON.stringify(status)
}

/** Null if the text is not a history, or of another version. */
export function unpackHistory(history: string): HistoryEvent[] | null {
  const lines = history.split('\n')
  if (lines[0] !== VERSION) return null
  const events: HistoryEvent[] = []
  let before: HistoryEvent | null = null
  for (let i = 1; i < lines.length; i += 1) {
    before = eventOf((lines[i] ?? '').split('\t'), before)
    if (before === null) return null
    events.push(before)
  }
  return events
}

/** Only the numbers of its events; null if the text is not a history, or of another version. */
export function seqsInHistory(history: string): readonly number[] | null {
  const [version, ...lines] = history.split('\n')
  const seqs = lines.map((line) => Number.parseInt(line, 10))
  return version === VERSION && seqs.every(Number.isSafeInteger) ? seqs : null
}

/** Null if the fields are not those of an event. */
function eventOf(fields: readonly string[], before: HistoryEvent | null): HistoryEvent | null {
  const [seq, createdAt] = [Number(fields[0]), Number(fields[3])]
  if (!Number.isSafeInteger(seq) || !Number.isSafeInteger(createdAt)) return null
  const id = fields[1] ?? ''
  const code = fields[2] ?? ''
  const customerId = fields[4] === SAME ? (before?.customerId ?? null) : textIn(fields[4])
  const productId = fields[5] === SAME ? (before?.productId ?? null) : textIn(fields[5])
  const ofPayment = PAYMENT_CODES.get(code)
  if (ofPayment !== undefined) {
    const railProof = fields[7] === '' ? null : PROOFS.get(fields[7] ?? '')
    if (fields.length !== 8 || railProof === undefined) return null
    const paymentId = textIn(fields[6])
    const type = ofPayment
    return { seq, id, subject: 'payment', type, createdAt, customerId, productId, paymentId, railProof }
  }
  const ofSubscription = SUBSCRIPTION_CODES.get(code)
  if (ofSubscription !== undefined) {
    const status = statusIn(fields[7] ?? '')
    if (fields.length !== 11 || status === undefined) return null
    return {
      seq,
      id,
      subject: 'subscription',
      type: ofSubscription,
      createdAt,
      customerId,
      productId,
      paymentId: textIn(fields[6]),
      status,
      cycles: cyclesIn(fields[8] ?? ''),
      cancelAtPeriodEnd: fields[9] === '' ? null : fields[9] === '1',
      expiresAt: numberIn(fields[10]),
    }
  }
  const type = GRANT_CODES.get(code)
  if (type === undefined || fields.length !== 7 || customerId === null || productId === null) return null
  return { seq, id, subject: 'manual', type, createdAt, customerId, productId, until: numberIn(fields[6]) }
}

function textIn(field: string | undefined): string | null {
  return field === undefined || field === '' ? null : field
}

function numberIn(field: string | undefined): number | null {
  return field === undefined || field === '' ? null : Number(field)
}

/** Undefined if it is damaged. */
function statusIn(field: string): string | null | undefined {
  if (!field.startsWith('"')) return textIn(field)
  try {
    return JSON.parse(field) as string
  } catch {
    return undefined
  }
}

function cyclesIn(field: string): KeptSubscription['cycles'] {
  if (field === '') return null
  const [current, total] = field.split('/')
  return { current: numberIn(current), total: numberIn(total) }
}
