/* What a record of a payment shows that no stored event says. */

import type { HistoryEvent } from '../entitlements/history.js'
import type { KeptPayment, SourceEvent } from '../entitlements/model.js'
import { readPayment, readSubscription } from '../entitlements/reading.js'
import { isNewerLink, linkOf, type PaymentLink } from '../entitlements/source-of.js'
import type { Rail } from '../provider/event.js'
import type { PaymentEventType } from '../provider/event-types.js'
import { compareByTime, newestValue } from '../provider/order.js'
import type { PaymentRecord } from './record.js'
import { atOrAfter, createReporter, type Reading, type Report } from './reporter.js'

/** The statuses that events exist for. */
const TYPE_OF_STATUS: Readonly<Record<string, PaymentEventType>> = {
  AUTHORIZED: 'payment.authorized',
  COMPLETED: 'payment.succeeded',
  FAILED: 'payment.failed',
  DECLINED: 'payment.failed',
  CANCELED: 'payment.canceled',
  PARTIALLY_REFUNDED: 'payment.partially_refunded',
  REFUNDED: 'payment.refunded',
}

const GRANTS: readonly KeptPayment['type'][] = [
  'payment.authorized',
  'payment.succeeded',
  'checkout.succeeded',
]

/** How far an event may be from the instant in the record: 1 hour, in either direction. */
const SAME_MS = 60 * 60 * 1000

interface Entry {
  readonly type: PaymentEventType
  readonly at: number
}

/** The stored facts that a report about a payment depends on. */
export interface StoredForPayment {
  /** The newest event that names its subscription. */
  readonly link: PaymentLink | undefined
  /** Every event of its source, and of the subscription that the record names. */
  readonly events: readonly HistoryEvent[]
  /** Those of the subscription that it belongs to by the record, or else by the link; empty: it is a one-time payment. */
  readonly ofSubscription: readonly HistoryEvent[]
}

/** @param isChargedBack whether the legacy interface lists it as charged back */
export function reportPayment(
  record: PaymentRecord,
  stored: StoredForPayment,
  isChargedBack: boolean,
  reading: Reading,
): Report {
  const { id, said, json, timeline } = record
  const reporter = createReporter(id, stored.events, reading)
  const subscriptionId = said.subscriptionId ?? stored.link?.subscriptionId ?? null
  const own = () => reporter.events().filter((event): event is KeptPayment => isOf(event, id))
  const railIn = (events: readonly SourceEvent[]): Rail => readPayment(events, reading.policy).rail
  const isCard = () => railIn([...own(), said]) === 'card'
  const source = () => [...withoutManual(stored.ofSubscription).filter((event) => !isOf(event, id)), ...own()]

  function tells(event: KeptPayment, type: PaymentEventType): boolean {
    if (event.type === type) return true
    if (type === 'payment.canceled') return event.type === 'checkout.canceled'
    return type === 'payment.authorized' && event.type === 'checkout.succeeded' && isCard()
  }

  /** An event tells one entry, the nearest of its type. */
  function untold(entries: readonly Entry[]): readonly Entry[] {
    const told = own().map((event) => {
      const distance = ({ at }: Entry) => Math.abs(at - event.createdAt)
      const near = entries.filter((entry) => tells(event, entry.type) && distance(entry) <= SAME_MS)
      return near.reduce<Entry | undefined>(
        (best, entry) => (best !== undefined && distance(best) <= distance(entry) ? best : entry),
        undefined,
      )
    })
    return entries.filter((entry) => !told.includes(entry))
  }

  function newest(matches: (event: KeptPayment) => boolean): KeptPayment | undefined {
    return own().filter(matches).sort(compareByTime).at(-1)
  }

  /** Without a history, whether any event tells that a payment ended in a status. */
  function isTold(type: PaymentEventType): boolean {
    const told = newest((event) => tells(event, type))
    if (told === undefined) return false
    const undone =
      type === 'payment.failed'
        ? newest((event) => GRANTS.includes(event.type))
        : type === 'payment.authorized'
          ? newest((event) => event.type === 'payment.failed')
          : undefined
    return undone === undefined || compareByTime(told, undone) > 0
  }

  const entries =
    timeline.length > 0
      ? untold(entriesIn(timeline))
      : entriesOfStatus(record, isCard()).filter(({ type }) => !isTold(type))
  for (const { type, at } of entries) {
    // A voided payment was one by card; that a checkout was canceled says nothing of the rail.
    const isCheckout = type === 'payment.canceled' && railIn([...own(), said]) === 'crypto'
    reporter.add({ type: isCheckout ? 'checkout.canceled' : type, at, data: json })
  }
  if (isChargedBack && newest(({ type }) => type === 'payment.chargeback') === undefined) {
    reporter.add({ type: 'payment.chargeback', at: reading.at, data: json })
    if (subscriptionId !== null && isPaidAgain(id, source(), reading))
      reporter.note('chargeback_date_unknown')
  }

  reporter.settle(() => {
    // Of a payment that nobody has heard of there is nothing to correct.
    if (own().length === 0) return null
    const link = newestLink(stored.link, reporter.reported())
    const isLinked = said.subscriptionId === null || link?.subscriptionId === said.subscriptionId
    const customerId = newestValue(source(), (event) => event.customerId)
    const productId = newestValue(own(), (event) => event.productId)
    const isKnown =
      isLinked &&
      (said.customerId === null || said.customerId === customerId) &&
      (said.productId === null || subscriptionId !== null || said.productId === productId) &&
      (railIn(own()) === 'crypto' || railIn([...own(), said]) !== 'crypto')
    const compared = [...source(), ...(link === undefined ? [] : [{ createdAt: link.linkedAt }])]
    return isKnown
      ? null
      : { type: 'payment.reported', at: atOrAfter(record.updatedAt, compared), data: json }
  })
  // A payment that failed may have paid a cycle before, and one that succeeded may have paid it days earlier.
  const isCardPerhaps = railIn([...own(), said]) !== 'crypto'
  const hasResult = timeline.length === 0 && TYPE_OF_STATUS[record.status] !== undefined
  const isAuthorized = own().some((event) => tells(event, 'payment.authorized'))
  if (hasResult && isCardPerhaps && !isAuthorized && subscriptionId !== null) {
    reporter.note('authorization_unknown')
  }
  return reporter.report()
}

function isOf(event: SourceEvent, paymentId: string): boolean {
  return event.subject === 'payment' && event.paymentId === paymentId
}

function withoutManual(events: readonly HistoryEvent[]): readonly SourceEvent[] {
  return events.filter((event) => event.subject !== 'manual')
}

/** An entry that repeats one is the same. */
function entriesIn(timeline: PaymentRecord['timeline']): readonly Entry[] {
  const entries: Entry[] = []
  for (const { status, at } of timeline) {
    const type = TYPE_OF_STATUS[status]
    if (type === undefined || entries.some((entry) => entry.type === type && entry.at === at)) continue
    entries.push({ type, at })
  }
  return entries
}

function isRefund({ status }: PaymentRecord): boolean {
  return status === 'REFUNDED' || status === 'PARTIALLY_REFUNDED'
}

/** What must have happened to a payment whose history is not known, by its status alone. */
function entriesOfStatus(record: PaymentRecord, isCard: boolean): readonly Entry[] {
  const { status, paidAt, createdAt, updatedAt, refundedAt } = record
  const type = TYPE_OF_STATUS[status]
  if (type === undefined) return []
  if (isRefund(record)) {
    return [...paidEntries(paidAt ?? createdAt, isCard), { type, at: refundedAt ?? updatedAt }]
  }
  if (status !== 'COMPLETED') return [{ type, at: updatedAt }]
  const authorized: Entry = { type: 'payment.authorized', at: paidAt ?? createdAt }
  return [...(isCard ? [authorized] : []), { type, at: paidAt ?? updatedAt }]
}

function paidEntries(at: number, isCard: boolean): readonly Entry[] {
  const succeeded: Entry = { type: 'payment.succeeded', at }
  return isCard ? [{ type: 'payment.authorized', at }, succeeded] : [succeeded]
}

function newestLink(
  known: PaymentLink | undefined,
  reported: readonly { readonly event: Parameters<typeof linkOf>[0] }[],
): PaymentLink | undefined {
  return reported
    .map(({ event }) => linkOf(event))
    .filter((link) => link !== null)
    .reduce((newest, link) => (isNewerLink(link, newest) ? link : newest), known)
}

/** Whether another payment of the subscription was first paid later. */
function isPaidAgain(id: string, events: readonly SourceEvent[], { policy }: Reading): boolean {
  const { firstPaid } = readSubscription(events, policy)
  const place = firstPaid.get(id)
  return place !== undefined && [...firstPaid.values()].some((other) => other > place)
}
