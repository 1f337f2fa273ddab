/* The types of the access rules: events as the rules read them, sources and their intervals, entitlements, answers. */

import type { Environment, ManualEvent, PaymentEvent, Rail, SubscriptionEvent } from '../provider/event.js'

/**
 * What the rules read of an event beside what all events have: a source's history keeps these fields, in this order.
 * A new one comes last: events stored before it have null there.
 */
export const KEPT = {
  payment: ['paymentId', 'railProof'],
  subscription: ['paymentId', 'status', 'cycles', 'cancelAtPeriodEnd', 'expiresAt'],
  manual: ['until'],
} as const

type Kept<Event, Own extends keyof Event> = Pick<Event, Extract<keyof Event, KeptOfAll>> & {
  readonly [Name in Own]: Event[Name] | null
}
type KeptOfAll = 'subject' | 'id' | 'type' | 'createdAt' | 'customerId' | 'productId'

export type KeptPayment = Kept<PaymentEvent, (typeof KEPT)['payment'][number]>
export type KeptSubscription = Kept<SubscriptionEvent, (typeof KEPT)['subscription'][number]>

/** Types that the provider sends: the policy decides their effect. */
export type SourceEvent = KeptPayment | KeptSubscription

/** A manual grant, or its revocation: the only manual changes that form a source. */
export interface GrantAct extends Kept<ManualEvent, (typeof KEPT)['manual'][number]> {
  readonly type: 'manual.granted' | 'manual.revoked'
  readonly productId: string
}

/** The events that form sources, of every kind. */
export type FoldableEvent = SourceEvent | GrantAct

export function isGrantAct(event: ManualEvent): event is ManualEvent & GrantAct {
  const isGrant = event.type === 'manual.granted' || event.type === 'manual.revoked'
  return isGrant && event.productId !== null
}

interface TypeFacts {
  /** The code of the type in a source's history. */
  readonly code: string
  /** Why access ended, if an event of the type ended it. */
  readonly ends: EndReason
  /** The name of the type in an explanation. */
  readonly name: string
}

interface SubscriptionTypeFacts extends TypeFacts {
  /** Which cycle an event of the type says was paid: the subscription's first, or a further one. */
  readonly pays: 'first' | 'again' | null
  /** Whether it shows the subscription's plan and the end of its term. */
  readonly plan: boolean
}

const PAYMENT_TYPES: Readonly<Record<PaymentEvent['type'], TypeFacts>> = {
  'payment.authorized': { code: 'pa', ends: 'failed', name: 'Authorization' },
  'payment.succeeded': { code: 'ps', ends: 'failed', name: 'Success' },
  'payment.completed': { code: 'pc', ends: 'failed', name: 'Completion' },
  'payment.failed': { code: 'pf', ends: 'failed', name: 'Failure' },
  'payment.canceled': { code: 'px', ends: 'voided', name: 'Voiding' },
  'payment.refunded': { code: 'pr', ends: 'refunded', name: 'Refund' },
  'payment.partially_refunded': { code: 'pp', ends: 'refunded', name: 'Partial refund' },
  'payment.chargeback': { code: 'pb', ends: 'charged_back', name: 'Chargeback' },
  'payment.settled': { code: 'pt', ends: 'failed', name: 'Settlement' },
  'checkout.initiated': { code: 'ci', ends: 'failed', name: 'Started checkout' },
  'checkout.succeeded': { code: 'cs', ends: 'failed', name: 'Completed checkout' },
  'checkout.failed': { code: 'cf', ends: 'failed', name: 'Failed checkout' },
  'checkout.canceled': { code: 'cx', ends: 'voided', name: 'Canceled checkout' },
  'payment.reported': { code: 'pd', ends: 'failed', name: 'Record of the payment' },
}
export const SUBSCRIPTION_TYPES: Readonly<Record<SubscriptionEvent['type'], SubscriptionTypeFacts>> = {
  'subscription.created': { code: 'sc', ends: 'expired', name: 'Start', pays: 'first', plan: true },
  'subscription.renewed': { code: 'sr', ends: 'expired', name: 'Renewal', pays: 'again', plan: true },
  'subscription.updated': { code: 'su', ends: 'expired', name: 'Update', pays: null, plan: true },
  'subscription.past_due': { code: 'sp', ends: 'expired', name: 'Overdue notice', pays: null, plan: false },
  'subscription.canceled': { code: 'sx', ends: 'canceled', name: 'Cancellation', pays: null, plan: false },
  'subscription.expired': { code: 'se', ends: 'expired', name: 'Expiry', pays: null, plan: false },
  'subscription.reported': { code: 'sd', ends: 'expired', name: 'Record', pays: null, plan: false },
}
const GRANT_TYPES: Readonly<Record<GrantAct['type'], TypeFacts>> = {
  'manual.granted': { code: 'mg', ends: 'revoked', name: 'Manual grant' },
  'manual.revoked': { code: 'mr', ends: 'revoked', name: 'End of the manual grant' },
}

/** Every type of event that forms sources, by subject and together. */
export const TYPES_OF = { payment: PAYMENT_TYPES, subscription: SUBSCRIPTION_TYPES, manual: GRANT_TYPES }
export const TYPES = { ...PAYMENT_TYPES, ...SUBSCRIPTION_TYPES, ...GRANT_TYPES }

export type SourceKind = 'subscription' | 'payment' | 'manual'

/** A source of access within one environment. Ids of different kinds may be equal: the pair is the key. */
export interface SourceKey {
  readonly kind: SourceKind
  readonly id: string
}

/** Why access ended, or will end. */
export type EndReason =
  | 'failed'
  | 'refunded'
  | 'charged_back'
  | 'voided'
  | 'expired'
  | 'canceled'
  | 'completed'
  | 'lapsed'
  | 'moved'
  | 'revoked'

/** Access of one product from `from` (inclusive) until `until` (exclusive), in epoch milliseconds. */
export interface AccessInterval {
  readonly productId: string
  readonly from: number
  /** Null: no end is known. */
  readonly until: number | null
  /** Null exactly if `until` is. */
  readonly reason: EndReason | null
  /** The event that set the end; or, if there is none, the event that began the access. */
  readonly eventId: string
}

/** A manual grant: if access is already running, it only changes its end. */
export interface GrantByHand {
  /** Epoch milliseconds. */
  readonly at: number
  readonly eventId: string
}

/** Why a grant or a take-back waits. */
export type HoldReason = 'source_unknown' | 'customer_unknown' | 'product_unknown' | 'rail_unknown'

/** What the newest events of a subscription say of it, apart from its access. */
export interface Shown {
  /** When the provider last reported it, unless a renewal came since; ends with access. */
  readonly pastDueSince: number | null
  readonly cancelAtPeriodEnd: boolean
  readonly periodEnd: number | null
  /** The provider's own word for a subscription's status, from the newest event that has one. */
  readonly providerStatus: string | null
}

/** A folded source: a pure function of the set of its events and the policy. */
export interface SourceState extends SourceKey, Shown {
  /** Null until an event names the customer; such a source gives nobody access. */
  readonly customerId: string | null
  readonly rail: Rail
  /** In order, without overlaps, and never empty. */
  readonly intervals: readonly AccessInterval[]
  /** `createdAt` of the newest event: an answer about now is never about an earlier instant. */
  readonly newestAt: number
  /** Paid cycles without a known payment: no refund can end them. */
  readonly cyclesWithoutPayment: number
  /** Waiting events, by id. */
  readonly held: Readonly<Record<string, HoldReason>>
  /** In order; only for grants by hand. */
  readonly grantsByHand?: readonly GrantByHand[]
}

export type EntitlementStatus = 'active' | 'ending' | 'blocked' | 'none' | EndReason

/** The state of one product in one source at one instant: `until` is the known end of access, past or coming. */
export interface SourceView
  extends Pick<SourceState, 'id' | 'kind' | 'rail'>,
    Omit<Shown, 'pastDueSince' | 'providerStatus'>,
    Pick<AccessInterval, 'until' | 'reason' | 'eventId'> {
  readonly active: boolean
  readonly since: number | null
  readonly pastDue: boolean
}

/** Whether one customer may use one product at one instant, as answers, the change log and the outbound webhook show it. */
export interface AccessSnapshot {
  readonly active: boolean
  readonly status: EntitlementStatus
  /** The beginning of the current unbroken stretch of access; null if inactive. */
  readonly since: number | null
  /** The end of access: while active, of the longest-lasting source; later, of the source that ended last. */
  readonly until: number | null
}

/** The same, and why. */
export interface Entitlement extends AccessSnapshot {
  readonly productId: string
  readonly pastDue: boolean
  readonly sources: readonly SourceView[]
}

/**
 * The instant of a question. A question about now uses the later of the clock and the source's newest event, since the
 * provider's clock may be ahead of ours; a question about an instant uses that instant.
 */
export type Instant = { readonly now: number } | { readonly at: number }

/** Who made a change by hand, and why; left out where nobody asks for it. */
export interface ByHand {
  readonly actor?: string
  readonly reason?: string | null
}

/** A block on one product, or on every one (`productId` null), from `from` (inclusive) until `until` (exclusive). */
export interface Block extends ByHand {
  readonly productId: string | null
  readonly from: number
  /** Null: it is in force. */
  readonly until: number | null
}

/** An erasure of a customer: its time, in epoch milliseconds, and its event. */
export interface Erasure {
  readonly at: number
  readonly eventId: string
}

/**
 * Everything that one customer may use in one environment at one instant. All instants
 * are epoch milliseconds. An unknown customer has no entitlements.
 */
export interface AccessAnswer {
  readonly customerId: string
  readonly environment: Environment
  readonly asOf: number
  /** The next instant at which this answer changes by itself; null: only an event can change it. */
  readonly validUntil: number | null
  /** The place in the change log that the answer belongs to. */
  readonly cursor: string
  /** Whether a block on every product is in force: it also covers products never granted. */
  readonly blocked: boolean
  readonly entitlements: readonly Entitlement[]
}

/** The same for one product, listed or not. */
export interface ProductAnswer extends Omit<AccessAnswer, 'blocked' | 'entitlements'>, Entitlement {}
