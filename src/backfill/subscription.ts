/* What a record of a subscription shows that no stored event says. */

import { foldSource } from '../entitlements/fold-source.js'
import type { HistoryEvent } from '../entitlements/history.js'
import type { KeptSubscription, SourceEvent } from '../entitlements/model.js'
import {
  isCancellation,
  isCycleEvent,
  namingRankOf,
  type Reading as ReadEvent,
  readSubscription,
  type SourceReading,
  showsPlan,
} from '../entitlements/reading.js'
import { cancellationAt } from '../entitlements/walk.js'
import type { SubscriptionEventType } from '../provider/event-types.js'
import { isReportedEventId } from '../provider/ids.js'
import type { JsonObject } from '../provider/json.js'
import { newestValue } from '../provider/order.js'
import type { SubscriptionRecord } from './record.js'
import {
  atOrAfter,
  createReporter,
  type Missing,
  type Reading,
  type Report,
  type ReportedEvent,
  type Reporter,
} from './reporter.js'

const HOUR_MS = 60 * 60 * 1000
const DAY_MS = 24 * HOUR_MS

/** The statuses that events exist for. */
const REPORTED_STATUSES = ['ACTIVE', 'PAST_DUE', 'CANCELED', 'EXPIRED']

/** The events that change a subscription's status. */
const STATUS_TYPES: readonly KeptSubscription['type'][] = [
  'subscription.created',
  'subscription.renewed',
  'subscription.past_due',
  'subscription.canceled',
  'subscription.expired',
]

/** @param stored every event of the subscription and of its payments, what was reported of those included */
export function reportSubscription(
  record: SubscriptionRecord,
  stored: readonly HistoryEvent[],
  reading: Reading,
): Report {
  const reporter = createReporter(record.id, stored, reading)
  const why = whyNot(record, stored, reading)
  if (why !== null) {
    reporter.note(why, why === 'status_unexplained' ? record.status : undefined)
    return reporter.report()
  }
  const view = createView(record, reporter, reading)
  for (const rule of [
    missingCycle,
    missingPlan,
    missingTerm,
    missingAnnouncement,
    missingStatus,
    missingCustomer,
  ]) {
    reporter.settle(() => rule(record, view()))
  }
  if (isEndUnknown(record, view())) reporter.note('term_end_unknown')
  if (endsTooEarly(record, view(), reporter.reported())) reporter.note('cancellation_end_unknown')
  return reporter.report()
}

/** Why nothing is reported of a record; null: all that is missing is. */
function whyNot(
  { status, updatedAt }: SubscriptionRecord,
  stored: readonly HistoryEvent[],
  { at, newestSeq }: Reading,
) {
  if (!REPORTED_STATUSES.includes(status)) return 'status_unexplained'
  const sent = stored.filter(({ id }) => !isReportedEventId(id))
  if (sent.some(({ seq, createdAt }) => seq > newestSeq || createdAt > at)) return 'read_again'
  const own = sent.filter(({ subject }) => subject === 'subscription')
  return own.some(({ createdAt }) => createdAt > updatedAt + HOUR_MS) ? 'record_older' : null
}

/** What the events say, those reported so far included. */
interface View {
  readonly reading: Reading
  readonly note: Reporter['note']
  readonly whole: SourceReading
  /** All events, and those of the subscription itself. */
  readonly all: readonly SourceEvent[]
  readonly own: readonly KeptSubscription[]
  /** When access ends; infinite where no end is known, and before everything where there was none. */
  readonly accessUntil: (more?: Missing) => number
  /** Whether the subscription shows that it will be canceled. */
  readonly isAnnounced: boolean
}

/** Computed again only after another event was reported. */
function createView(record: SubscriptionRecord, reporter: Reporter, reading: Reading): () => View {
  const key = { kind: 'subscription', id: record.id } as const
  let view: View | undefined
  return () => {
    const all = reporter.events()
    if (view?.all === all) return view
    const whole = readSubscription(all, reading.policy)
    const fold = (events: readonly SourceEvent[]) => foldSource(key, events, reading.policy)
    const state = fold(all)
    view = {
      reading,
      note: reporter.note,
      whole,
      all,
      own: all.filter((event) => event.subject === 'subscription'),
      accessUntil: (more) => {
        const added = more && reporter.read(more)
        const last = (added ? fold([...all, added]) : state).intervals.at(-1)
        return last === undefined ? Number.NEGATIVE_INFINITY : (last.until ?? Number.POSITIVE_INFINITY)
      },
      isAnnounced: state.cancelAtPeriodEnd,
    }
    return view
  }
}

/** The newest of the subscription's own events that match, in the order in which they count. */
function newestOwn({ whole }: View, matches: (event: KeptSubscription) => boolean): ReadEvent | undefined {
  return whole.walk.findLast(({ event }) => event.subject === 'subscription' && matches(event))
}

/** An event of the record as it is. */
function missing(type: Missing['type'], at: number, { json, said }: SubscriptionRecord): Missing {
  // An event without a period's end would lift the end of a fixed term.
  const isOpen = said.expiresAt === null && said.cycles?.total !== null
  return { type, at, data: isOpen ? without(json, ['totalCycles', 'total_cycles']) : json }
}

function without(json: JsonObject, names: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(json).filter(([name]) => !names.includes(name)))
}

/** The same, of another product or of none. */
function withProduct({ data, ...rest }: Missing, productId: string | null): Missing {
  const left = without(data, ['product', 'productId', 'product_id'])
  return { ...rest, data: productId === null ? left : { ...left, productId } }
}

/** When the record was changed, but after the subscription's own events. */
function whenChanged({ updatedAt }: SubscriptionRecord, { own }: View): number {
  return atOrAfter(updatedAt, own)
}

function runs({ status }: SubscriptionRecord): boolean {
  return status === 'ACTIVE' || status === 'PAST_DUE'
}

function missingCycle(record: SubscriptionRecord, view: View): Missing | null {
  const number = numberOf(record)
  if (!runs(record) || number === null || number < 1) return null
  const { policy, at: now } = view.reading
  const ended = newestOwn(
    view,
    (event) =>
      event.type === 'subscription.expired' ||
      (isCancellation(event) && cancellationAt(event, policy) <= now),
  )
  if (view.whole.walk.some((read) => read.index > (ended?.index ?? -1) && tellsCycle(record, read.event))) {
    return null
  }
  const type: SubscriptionEventType = number === 1 ? 'subscription.created' : 'subscription.renewed'
  const paid = cyclePayment(record, view, ended)
  if (paid === null && record.status === 'PAST_DUE') return null
  const event = missing(type, paid?.at ?? whenChanged(record, view), record)
  return paid === null ? event : withProduct(event, productOf(paid.id, view))
}

function numberOf({ json }: SubscriptionRecord): number | null {
  const number = json.currentCycle ?? json.current_cycle
  return typeof number === 'number' ? number : null
}

/** Whether an event says that the record's cycle was paid: by its number or its type, or else by the end of its period. */
function tellsCycle(record: SubscriptionRecord, event: SourceEvent): boolean {
  if (!isCycleEvent(event)) return false
  const { cycles, expiresAt } = event
  if (cycles !== null && cycles.current !== null) return cycles.current === numberOf(record)
  // A subscription begins with its first cycle, whose end a plan change may have moved since.
  if (event.type === 'subscription.created' && numberOf(record) === 1) return true
  const due = record.said.expiresAt
  return due === null || (expiresAt !== null && expiresAt >= due - HOUR_MS)
}

/** A payment, and the instant of its first paying event. */
interface Paid {
  readonly id: string
  readonly at: number
}

/** The payment that paid the record's cycle, among those of which no event says what they paid; null: none did. */
function cyclePayment(record: SubscriptionRecord, view: View, ended: ReadEvent | undefined): Paid | null {
  const { whole } = view
  const newest = newestOwn(view, isCycleEvent)
  const since = Math.max(...[newest, ended].map((read) => read?.event.createdAt ?? Number.NEGATIVE_INFINITY))
  const spent = new Set(whole.cyclePayments.values())
  const free = paidIn(whole).filter(({ id, at }) => !spent.has(id) && at > since)
  const number = numberOf(record) ?? 1
  const began = cycleBegan(record, number)
  const first = began === null ? undefined : free.find(({ at }) => at >= began - DAY_MS)
  if (first === undefined) {
    // A plan change that begins a cycle moves its end, and so what is taken for its beginning, ahead of all payments.
    const charges = planCharges(whole)
    const left = free.filter(({ id }) => !charges.has(id))
    if (left.length > 1) view.note('cycle_payment_unclear')
    const untold = untoldCharges(number, charges, view)
    return left.findLast(({ id }) => !untold.has(id)) ?? left.at(-1) ?? null
  }
  const restarted = newest?.event.subject === 'subscription' && (newest.event.cycles?.current ?? 0) >= number
  if (restarted && free.length > 1) view.note('cycle_payment_unclear')
  return first
}

/** When the record's cycle began, if all its cycles were equally long; null: no end of it is known. */
function cycleBegan({ said: { expiresAt: due }, createdAt }: SubscriptionRecord, number: number) {
  return due === null ? null : due - (due - createdAt) / number
}

/** Every payment that paid, in order. */
function paidIn({ firstPaid, walk }: SourceReading): readonly Paid[] {
  return [...firstPaid].flatMap(([id, index]) => ({ id, at: walk[index]?.event.createdAt ?? 0 }))
}

/** The payments that plan changes were charged to. */
function planCharges({ walk, firstProduct, findCharge }: SourceReading): ReadonlySet<string> {
  const charges = new Set<string>()
  let productId = firstProduct
  for (const { event } of walk) {
    if (event.subject !== 'subscription' || !showsPlan(event) || event.productId === null) continue
    const isChange = event.type === 'subscription.updated' && event.productId !== productId
    const charge = isChange ? findCharge(event) : null
    if (charge !== null) charges.add(charge)
    productId = event.productId
  }
  return charges
}

/**
 * The payments that nothing but a plan change explains, though no event tells one: each is for another product than the one
 * before it, and there are as many of them as there are more payments than cycles.
 */
function untoldCharges(cycles: number, told: ReadonlySet<string>, view: View): ReadonlySet<string> {
  const payments = paidIn(view.whole).map(({ id }) => ({ id, productId: productOf(id, view) }))
  const changing = payments.filter(
    ({ id, productId }, i) =>
      i > 0 && !told.has(id) && productId !== null && productId !== payments[i - 1]?.productId,
  )
  const unneeded = payments.length - told.size - cycles
  return new Set(changing.length === unneeded ? changing.map(({ id }) => id) : [])
}

function productOf(paymentId: string, { all }: View): string | null {
  const own = all.filter((event) => event.subject === 'payment' && event.paymentId === paymentId)
  return newestValue(own, (event) => event.productId)
}

function missingPlan(record: SubscriptionRecord, view: View): Missing | null {
  const { productId } = record.said
  const { whole } = view
  const naming = whole.walk.findLast(
    (read) => read.event.productId !== null && namingRankOf(read) === whole.namingRank,
  )
  if (productId === null || naming?.event.productId === productId) return null
  const charge = chargeSince(
    newestOwn(view, (event) => showsPlan(event) && event.productId !== null),
    view,
  )
  return missing('subscription.updated', charge?.at ?? whenChanged(record, view), record)
}

/** The newest payment since a naming that succeeded, and that paid for nothing else. */
function chargeSince(naming: ReadEvent | undefined, { whole, all }: View): Paid | undefined {
  if (naming === undefined) return undefined
  const spent = new Set([...whole.cyclePayments.values(), ...planCharges(whole)])
  const succeeded = new Set(
    all.flatMap((event) => (event.type === 'payment.succeeded' ? event.paymentId : [])),
  )
  return paidIn(whole).findLast(
    ({ id, at }) => !spent.has(id) && at > naming.event.createdAt && succeeded.has(id),
  )
}

function missingTerm(record: SubscriptionRecord, view: View): Missing | null {
  const { cycles, expiresAt } = record.said
  if (record.status !== 'ACTIVE' || expiresAt === null || cycles === null || cycles.total === null)
    return null
  const shown = newestOwn(view, (event) => showsPlan(event) && event.cycles !== null)?.event
  const told = shown?.subject === 'subscription' ? shown.cycles : null
  if (told?.current === cycles.current && told?.total === cycles.total) return null
  return withProduct(missing('subscription.updated', whenChanged(record, view), record), null)
}

function missingAnnouncement(record: SubscriptionRecord, view: View): Missing | null {
  const { cancelAtPeriodEnd } = record.said
  if (!runs(record) || cancelAtPeriodEnd === null || cancelAtPeriodEnd === view.isAnnounced) return null
  return missing('subscription.reported', whenChanged(record, view), record)
}

function missingStatus(record: SubscriptionRecord, view: View): Missing | null {
  const newest = (types: readonly SourceEvent['type'][]) =>
    newestOwn(view, ({ type }) => types.includes(type))?.event.type
  const told = newest(STATUS_TYPES)
  const at = whenChanged(record, view)
  switch (record.status) {
    case 'PAST_DUE':
      return told === 'subscription.past_due' ? null : missing('subscription.past_due', at, record)
    case 'CANCELED': {
      const event = missing('subscription.canceled', at, record)
      // The legacy generation, which has no word for it, says of a canceled subscription that it expired.
      const isTold = newest(STATUS_TYPES.filter((type) => type !== 'subscription.expired')) === event.type
      return isTold && !outlasts(canceledUntil(record, view), event, view) ? null : event
    }
    case 'EXPIRED': {
      const event = missing('subscription.expired', at, record)
      return told === event.type && !outlasts(Number.NEGATIVE_INFINITY, event, view) ? null : event
    }
    default:
      return null
  }
}

/** Whether a reported cancellation ends access, though it may wait for the end of a period that events have told. */
function endsTooEarly(
  { said, updatedAt }: SubscriptionRecord,
  { own }: View,
  reported: readonly ReportedEvent[],
): boolean {
  const waits = said.cancelAtPeriodEnd === true && said.expiresAt === null
  const isTold = !reported.some(({ event }) => event.type === 'subscription.canceled')
  const periodEnd = newestValue(own, ({ expiresAt }) => expiresAt)
  return waits && !isTold && (periodEnd === null || periodEnd > updatedAt + HOUR_MS)
}

/** How long access may last by a record of a canceled subscription, an hour more allowed. */
function canceledUntil({ said }: SubscriptionRecord, { reading }: View): number {
  // It waits for the end of a period that the record no longer shows.
  if (said.cancelAtPeriodEnd === true && said.expiresAt === null) return Number.POSITIVE_INFINITY
  return cancellationAt(said, reading.policy) + HOUR_MS
}

/** Whether access lasts beyond both an instant and now, and one more event would end it earlier. */
function outlasts(end: number, event: Missing, { reading, all, accessUntil }: View): boolean {
  const now = all.reduce((latest, { createdAt }) => Math.max(latest, createdAt), reading.at)
  const until = accessUntil()
  return until > Math.max(end, now) && accessUntil(event) < until
}

function missingCustomer(record: SubscriptionRecord, { all }: View): Missing | null {
  const { customerId } = record.said
  if (customerId === null || newestValue(all, (event) => event.customerId) === customerId) return null
  return missing('subscription.reported', atOrAfter(record.updatedAt, all), record)
}

/** Whether the last cycle of a fixed term runs without an end that the fold could know. */
function isEndUnknown({ status, said, json }: SubscriptionRecord, { accessUntil }: View): boolean {
  const total = json.totalCycles ?? json.total_cycles
  const isLast = typeof total === 'number' && (said.cycles?.current ?? 0) >= total
  return (
    status === 'ACTIVE' && isLast && said.expiresAt === null && accessUntil() === Number.POSITIVE_INFINITY
  )
}
