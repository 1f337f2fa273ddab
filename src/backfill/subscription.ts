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
import {
  type Paid,
  paidCycles,
  paidIn,
  planChanges,
  productOf,
  unexplained,
  untoldCharges,
} from './paid-for.js'
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
/** A payment made this long before a cycle's end is not for the next one. */
const EARLY_MS = 2 * DAY_MS

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
  if (view().accessUntil() > reading.at) noteUnclear(view())
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
  const isRevived = ended !== undefined || isResumed(record, view)
  const isPaid = !isRevived && paidCycles(view.whole).size === number
  const free = unspentSince(ended, view)
  if (isPaid && isMovedByPlan(record, free, view)) return null
  const paid = cyclePayment(record, view, free)
  if (paid === null && record.status === 'PAST_DUE') return null
  // By its end a cycle is missing, by the number of payments none is.
  if (isPaid) view.note('cycle_payment_unclear')
  const type: SubscriptionEventType = number === 1 ? 'subscription.created' : 'subscription.renewed'
  const event = missing(type, paid?.at ?? whenChanged(record, view), record)
  return paid === null ? event : withProduct(event, productOf(paid.id, view))
}

/** Whether it was overdue by the newest event, and runs: it was paid for since, whatever the numbers come to. */
function isResumed({ status }: SubscriptionRecord, view: View): boolean {
  return status === 'ACTIVE' && newestStatus(view) === 'subscription.past_due'
}

/** The payments since the newest cycle and end that paid no cycle that was told. */
function unspentSince(ended: ReadEvent | undefined, view: View): readonly Paid[] {
  const reads = [newestOwn(view, isCycleEvent), ended]
  const since = Math.max(...reads.map((read) => read?.event.createdAt ?? Number.NEGATIVE_INFINITY))
  const spent = paidCycles(view.whole)
  return paidIn(view.whole).filter(({ id, at }) => !spent.has(id) && at > since)
}

/**
 * Whether a plan change alone moved the record's end: the newest cycle, told without a number, was far from its end when
 * all else was paid, and the change is told, or will be.
 */
function isMovedByPlan({ said }: SubscriptionRecord, free: readonly Paid[], view: View): boolean {
  const cycle = newestOwn(view, isCycleEvent)?.event
  if (cycle?.subject !== 'subscription' || cycle.expiresAt === null || said.expiresAt === null) return false
  const renewsAt = cycle.expiresAt - EARLY_MS
  const isNumbered = cycle.cycles !== null && cycle.cycles.current !== null
  if (isNumbered || free.some(({ at }) => at >= renewsAt)) return false
  const until = newestValue(view.own, ({ expiresAt }) => expiresAt) ?? 0
  return until >= said.expiresAt - HOUR_MS || (said.productId !== null && said.productId !== namedPlan(view))
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

/** Which payment paid the record's cycle, of those of which nothing says what they paid; null: none did. */
function cyclePayment(record: SubscriptionRecord, view: View, free: readonly Paid[]): Paid | null {
  const number = numberOf(record) ?? 1
  const began = cycleBegan(record, number)
  const first = began === null ? undefined : free.find(({ at }) => at >= began - DAY_MS)
  if (first === undefined) {
    // A plan change that begins a cycle moves its end, and so what is taken for its beginning, ahead of all payments.
    const charges = planChanges(view.whole)
    const left = free.filter(({ id }) => !charges.has(id))
    const untold = untoldCharges(number, view)
    const rest = left.filter(({ id }) => !untold.has(id))
    if (left.length > 1 || rest.length < left.length) view.note('cycle_payment_unclear')
    return rest.at(-1) ?? left.at(-1) ?? null
  }
  const newest = newestOwn(view, isCycleEvent)?.event
  const restarted = newest?.subject === 'subscription' && (newest.cycles?.current ?? 0) >= number
  if (restarted && free.length > 1) view.note('cycle_payment_unclear')
  return first
}

/** When the record's cycle began, if all its cycles were equally long; null: no end of it is known. */
function cycleBegan({ said: { expiresAt: due }, createdAt }: SubscriptionRecord, number: number) {
  return due === null ? null : due - (due - createdAt) / number
}

/** The plan that the newest naming names. */
function namedPlan({ whole }: View): string | null {
  const naming = whole.walk.findLast(
    (read) => read.event.productId !== null && namingRankOf(read) === whole.namingRank,
  )
  return naming?.event.productId ?? null
}

function missingPlan(record: SubscriptionRecord, view: View): Missing | null {
  const { productId } = record.said
  if (productId === null || namedPlan(view) === productId) return null
  const charge = chargeSince(
    newestOwn(view, (event) => showsPlan(event) && event.productId !== null),
    view,
  )
  return missing('subscription.updated', charge?.at ?? whenChanged(record, view), record)
}

/** The newest payment since a naming that succeeded, and that paid for nothing else. */
function chargeSince(naming: ReadEvent | undefined, { whole, all }: View): Paid | undefined {
  if (naming === undefined) return undefined
  const explained = new Set([...paidCycles(whole), ...planChanges(whole).keys()])
  const succeeded = new Set(
    all.flatMap((event) => (event.type === 'payment.succeeded' ? event.paymentId : [])),
  )
  return paidIn(whole).findLast(
    ({ id, at }) => !explained.has(id) && at > naming.event.createdAt && succeeded.has(id),
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

/** The newest type of event that changed the status. */
function newestStatus(view: View, except: readonly KeptSubscription['type'][] = []) {
  const types = STATUS_TYPES.filter((type) => !except.includes(type))
  return newestOwn(view, ({ type }) => types.includes(type))?.event.type
}

function missingStatus(record: SubscriptionRecord, view: View): Missing | null {
  const told = newestStatus(view)
  const at = whenChanged(record, view)
  switch (record.status) {
    case 'PAST_DUE':
      return told === 'subscription.past_due' ? null : missing('subscription.past_due', at, record)
    case 'CANCELED': {
      const event = missing('subscription.canceled', at, record)
      // The legacy generation, which has no word for it, says of a canceled subscription that it expired.
      const isTold = newestStatus(view, ['subscription.expired']) === event.type
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

/** Notes where a refund may end too much or too little, as nothing shows what some payments since the newest cycle paid for. */
function noteUnclear(view: View): void {
  const { whole } = view
  const cycle = newestOwn(view, isCycleEvent)
  if (cycle === undefined) return
  const unclear = unexplained(view).filter(({ at }) => at > cycle.event.createdAt)
  if (unclear.length === 0) return
  const charges = new Set<string | null>([...planChanges(whole).keys(), ...unclear.map(({ id }) => id)])
  const isGivenBack = ({ effect, event }: ReadEvent) => effect === 'take_back' && charges.has(event.paymentId)
  if (!whole.cyclePayments.has(cycle.index)) view.note('cycle_payment_unclear')
  else if (whole.walk.some(isGivenBack)) view.note('plan_charge_unclear')
}

/** Whether a reported cancellation ends access, though it may wait for the end of a period that events have told. */
function endsTooEarly(
  record: SubscriptionRecord,
  { own }: View,
  reported: readonly ReportedEvent[],
): boolean {
  const { said, updatedAt } = record
  const waits = said.cancelAtPeriodEnd === true && said.expiresAt === null
  const isTold = !reported.some(({ event }) => event.type === 'subscription.canceled')
  const number = numberOf(record)
  const ofCycle = own.filter(({ cycles }) => (cycles?.current ?? number) === number)
  const periodEnd = newestValue(ofCycle, ({ expiresAt }) => expiresAt)
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
