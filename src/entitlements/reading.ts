/* What a single event means to the rules: its row of the policy's table, its place in the order, the rail it proves. */

import type { PaymentEvent, Rail, SubscriptionEvent } from '../provider/event.js'
import type { EndReason } from './model.js'
import { compareByTime, compareText } from './order.js'
import { type Policy, type RevokeType, TERMINAL_TYPES } from './policy.js'

/** What the rules read of an event of a payment. A source keeps so much of each, and no more. */
export type KeptPayment = Pick<
  PaymentEvent,
  'subject' | 'id' | 'type' | 'createdAt' | 'customerId' | 'productId' | 'paymentId' | 'railProof'
>

/** The same of a subscription's. */
export type KeptSubscription = Pick<
  SubscriptionEvent,
  Exclude<keyof KeptPayment, 'railProof'> | 'status' | 'cycles' | 'cancelAtPeriodEnd' | 'expiresAt'
>

/** The events that a source is folded from. */
export type SourceEvent = KeptPayment | KeptSubscription

/** What the policy's table makes of an event. */
type Effect = 'grant' | 'take_back' | 'none'

/** The row of the policy's table that an event meets, and on which side. */
export interface PolicyRow {
  readonly rail: Rail
  readonly on: 'grant' | 'takeBack'
}

/** What an event comes to under one rail, and by which row; null: by none. */
interface Verdict {
  readonly effect: Effect
  readonly row: PolicyRow | null
}

type Verdicts = ReadonlyMap<SourceEvent['type'], Verdict>

/** A policy turned around, to look types up in. */
interface PolicyTable {
  /** For events that show their rail, and those of subscriptions. */
  readonly ofProven: Readonly<Record<Rail, Verdicts>>
  /** For payments' events that don't. */
  readonly ofUnproven: Readonly<Record<Rail, Verdicts>>
  readonly decisive: ReadonlySet<SourceEvent['type']>
}

const NO_VERDICT: Verdict = { effect: 'none', row: null }
const TERMINAL_VERDICT: Verdict = { effect: 'take_back', row: null }

/** Every fold asks for the table of the one policy in force. */
const tables = new WeakMap<Policy, PolicyTable>()

function tableOf(policy: Policy): PolicyTable {
  const known = tables.get(policy)
  if (known !== undefined) return known
  const table: PolicyTable = {
    ofProven: byRail((rail) => verdictsUnder(rail, [rail], policy)),
    ofUnproven: byRail((rail) => verdictsUnder(rail, ['unknown', rail], policy)),
    decisive: new Set([
      ...TERMINAL_TYPES,
      ...PAID_OR_ENDED,
      ...Object.values(policy.grantOn).flat(),
      ...Object.values(policy.revokeOn).flat(),
    ]),
  }
  tables.set(policy, table)
  return table
}

function byRail(verdictsOf: (rail: Rail) => Verdicts): Readonly<Record<Rail, Verdicts>> {
  return { card: verdictsOf('card'), crypto: verdictsOf('crypto'), unknown: verdictsOf('unknown') }
}

/**
 * A grant that shows no rail itself counts under `unknown` too, whatever is learned later:
 * a proof may add access, and never takes away what `unknown` gave.
 * @param grantRails whose rows grant, the one that names the row last
 */
function verdictsUnder(rail: Rail, grantRails: readonly Rail[], { grantOn, revokeOn }: Policy): Verdicts {
  const verdicts = new Map<SourceEvent['type'], Verdict>()
  for (const type of TERMINAL_TYPES) verdicts.set(type, TERMINAL_VERDICT)
  for (const type of revokeOn[rail])
    verdicts.set(type, { effect: 'take_back', row: { rail, on: 'takeBack' } })
  for (const granting of grantRails) {
    for (const type of grantOn[granting]) {
      if (TERMINAL_TYPES.includes(type)) continue
      verdicts.set(type, { effect: 'grant', row: { rail: granting, on: 'grant' } })
    }
  }
  return verdicts
}

const PAID_OR_ENDED: readonly SourceEvent['type'][] = [
  'subscription.created',
  'subscription.renewed',
  'subscription.canceled',
]

/** An event as the walk meets it: its place in the order, and what the table makes of it. */
export interface Reading<E extends SourceEvent = SourceEvent> {
  readonly event: E
  readonly effect: Effect
  /** Position in the walk: a lower one is walked earlier. */
  readonly index: number
}

/** Reads every event under its rail's row and puts all in the order in which they are walked. */
export function readEvents<E extends SourceEvent>(
  events: readonly E[],
  railOf: (event: E) => Rail,
  policy: Policy,
): Reading<E>[] {
  const table = tableOf(policy)
  const ranked: RankedReading<E>[] = []
  for (const event of events) {
    const { effect } = verdictIn(table, event, railOf(event))
    ranked.push({ event, effect, index: 0, rank: rankOf(event, effect) })
  }
  ranked.sort(compareInWalk)
  let index = 0
  for (const reading of ranked) reading.index = index++
  return ranked
}

interface RankedReading<E extends SourceEvent> extends Reading<E> {
  index: number
  readonly rank: number
}

function compareInWalk(a: RankedReading<SourceEvent>, b: RankedReading<SourceEvent>): number {
  return a.event.createdAt - b.event.createdAt || a.rank - b.rank || compareText(a.event.id, b.event.id)
}

/** The row that an event meets; null: none, as for the types that always take back. */
export function rowOf(event: SourceEvent, rail: Rail, policy: Policy): PolicyRow | null {
  return verdictIn(tableOf(policy), event, rail).row
}

function verdictIn(table: PolicyTable, event: SourceEvent, rail: Rail): Verdict {
  if (onlyInforms(event)) return NO_VERDICT
  const showsNoRail = event.subject === 'payment' && event.railProof === null
  const verdicts = showsNoRail ? table.ofUnproven : table.ofProven
  return verdicts[rail].get(event.type) ?? NO_VERDICT
}

/** A payment event that names its subscription but no payment has nothing to grant, or to take back. */
export function onlyInforms(event: SourceEvent): boolean {
  return event.subject === 'payment' && event.paymentId === null
}

/** At one instant: what only informs, then what gives, then what ends, so that a take-back has the last word. */
function rankOf({ type }: SourceEvent, effect: Effect): number {
  if (effect === 'take_back') return 4
  if (effect === 'grant' || type === 'payment.succeeded') return 1
  if (type === 'subscription.created' || type === 'subscription.renewed') return 2
  if (type === 'subscription.canceled') return 3
  return 0
}

/** Whether some row of the policy, or the documents whatever it says, gives or ends access on this type. */
export function isDecisive(type: SourceEvent['type'], policy: Policy): boolean {
  return tableOf(policy).decisive.has(type)
}

/** What a take-back of each type is called once access has ended by it. */
export const END_REASON_OF: Readonly<Record<RevokeType, EndReason>> = {
  'payment.authorized': 'failed',
  'payment.succeeded': 'failed',
  'payment.completed': 'failed',
  'payment.failed': 'failed',
  'payment.canceled': 'voided',
  'payment.refunded': 'refunded',
  'payment.partially_refunded': 'refunded',
  'payment.chargeback': 'charged_back',
  'payment.settled': 'failed',
  'checkout.initiated': 'failed',
  'checkout.succeeded': 'failed',
  'checkout.failed': 'failed',
  'checkout.canceled': 'voided',
  'subscription.created': 'expired',
  'subscription.renewed': 'expired',
  'subscription.updated': 'expired',
  'subscription.past_due': 'expired',
  'subscription.canceled': 'canceled',
  'subscription.expired': 'expired',
}

/**
 * What a payment's own events have made of it: `failed` may come good again, `final` never.
 * A payment without a standing has neither paid nor been taken back.
 */
export type Standing = 'good' | 'failed' | 'final'

export function standingAfter(
  before: Standing | undefined,
  event: KeptPayment,
  effect: Effect,
  pays: boolean,
): Standing | undefined {
  if (before === 'final') return before
  if (effect === 'take_back') return event.type === 'payment.failed' ? 'failed' : 'final'
  return pays ? 'good' : before
}

export function isTakenBack(standing: Standing | undefined): boolean {
  return standing === 'failed' || standing === 'final'
}

/** Of two events of a payment, the one with the stronger proof, the earlier of equals; null: no proof by now. */
function betterProof(event: KeptPayment, best: KeptPayment | null): KeptPayment | null {
  if (event.railProof === null) return best
  const lead = event.railProof.strength - (best?.railProof?.strength ?? 0)
  return lead > 0 || (lead === 0 && best !== null && compareByTime(event, best) < 0) ? event : best
}

/** What the strongest proof among a payment's events says, the earliest of equals. */
export function railOfPayment(events: readonly KeptPayment[]): Rail {
  let provenBy: KeptPayment | null = null
  for (const event of events) provenBy = betterProof(event, provenBy)
  return provenBy?.railProof?.rail ?? 'unknown'
}

/** A payment's earliest event, and the one that proves its rail; null: none does. */
interface PaymentRail {
  readonly first: KeptPayment
  readonly provenBy: KeptPayment | null
}

/** Of payments' own events, by payment; those that name none belong to no payment. */
export function railsOfPayments(events: readonly SourceEvent[]): ReadonlyMap<string, PaymentRail> {
  const rails = new Map<string, { first: KeptPayment; provenBy: KeptPayment | null }>()
  for (const event of events) {
    if (event.subject !== 'payment' || event.paymentId === null) continue
    const known = rails.get(event.paymentId)
    if (known === undefined) {
      rails.set(event.paymentId, { first: event, provenBy: betterProof(event, null) })
    } else {
      if (compareByTime(event, known.first) < 0) known.first = event
      known.provenBy = betterProof(event, known.provenBy)
    }
  }
  return rails
}

export function railIn(payment: PaymentRail | undefined): Rail {
  return payment?.provenBy?.railProof?.rail ?? 'unknown'
}

/** A subscription's rail: that of its earliest payment, by its first event, whose rail is known. */
export function railOfSubscription(payments: Iterable<PaymentRail>): Rail {
  let earliest: PaymentRail | undefined
  for (const payment of payments) {
    if (payment.provenBy === null) continue
    if (earliest === undefined || compareByTime(payment.first, earliest.first) < 0) earliest = payment
  }
  return railIn(earliest)
}
