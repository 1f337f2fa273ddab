/* The words of the access rules: sources and their intervals, entitlements, answers. */

import type { Environment, Rail } from '../provider/event.js'

export type SourceKind = 'subscription' | 'payment' | 'manual'

/** What gives access, within one environment. Ids of different kinds may be equal: the pair is the key. */
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
  /** Null exactly where `until` is. */
  readonly reason: EndReason | null
  /** The event that set the end, or, where none is known, the one that began the access. */
  readonly eventId: string
}

/** A grant by hand: where access is running already, it changes its end alone. */
export interface GrantByHand {
  /** Epoch milliseconds. */
  readonly at: number
  readonly eventId: string
}

/** Why a grant or a take-back waits. */
export type HoldReason = 'source_unknown' | 'customer_unknown' | 'product_unknown' | 'rail_unknown'

/** A source, folded: a pure function of the set of its events and the policy. */
export interface SourceState extends SourceKey {
  /** Null until some event tells; such a source gives nobody access. */
  readonly customerId: string | null
  readonly rail: Rail
  /** In order, never overlapping, never empty ones. */
  readonly intervals: readonly AccessInterval[]
  /** When the provider last said so, if no renewal came since; over as soon as access is. */
  readonly pastDueSince: number | null
  readonly cancelAtPeriodEnd: boolean
  readonly periodEnd: number | null
  /** The provider's own word for a subscription's status, from the newest event that shows one. */
  readonly providerStatus: string | null
  /** `createdAt` of the newest event: asked about now, the source answers no earlier than this. */
  readonly newestAt: number
  /** Paid cycles for which no payment was found: no refund can reach them. */
  readonly cyclesWithoutPayment: number
  /** Events that wait, by id. */
  readonly held: Readonly<Record<string, HoldReason>>
  /** In order; of what was granted by hand alone. */
  readonly grantsByHand?: readonly GrantByHand[]
}

export type EntitlementStatus = 'active' | 'ending' | 'blocked' | 'none' | EndReason

/** What one source says of one product at one instant: `until` is the known end of access, past or coming. */
export interface SourceView
  extends Pick<SourceState, 'id' | 'kind' | 'rail' | 'cancelAtPeriodEnd' | 'periodEnd'>,
    Pick<AccessInterval, 'until' | 'reason' | 'eventId'> {
  readonly active: boolean
  readonly since: number | null
  readonly pastDue: boolean
}

/** Whether one customer may use one product at one instant, and on the ground of what. */
export interface Entitlement {
  readonly productId: string
  readonly active: boolean
  readonly status: EntitlementStatus
  /** The beginning of the unbroken stretch of access now running; null if inactive. */
  readonly since: number | null
  /** The end of access: while active, of the source that lasts longest; after that, of the one that ended last. */
  readonly until: number | null
  readonly pastDue: boolean
  readonly sources: readonly SourceView[]
}

/**
 * The instant that a question is about. Asked about now, a source answers as of the later of the clock and
 * its newest event, since the provider's clock may run ahead of ours; asked about an instant, as of that.
 */
export type Instant = { readonly now: number } | { readonly at: number }

/** A block on one product, or on every one (`productId` null), from `from` (inclusive) until `until` (exclusive). */
export interface Block {
  readonly productId: string | null
  readonly from: number
  /** Null: it is in force. */
  readonly until: number | null
}

/** That a customer was erased: when, in epoch milliseconds, and by which event. */
export interface Erasure {
  readonly at: number
  readonly eventId: string
}

/**
 * Everything that one customer may use in one environment at one instant. All instants
 * are epoch milliseconds. A customer never seen has no entitlements.
 */
export interface AccessAnswer {
  readonly customerId: string
  readonly environment: Environment
  readonly asOf: number
  /** The next instant at which this answer changes by itself; null: only an event can change it. */
  readonly validUntil: number | null
  /** The place in the change log that the answer belongs to. */
  readonly cursor: string
  /** Whether a block on every product is in force: it covers products never granted, too. */
  readonly blocked: boolean
  readonly entitlements: readonly Entitlement[]
}

/** The same of one product, listed or not. */
export interface ProductAnswer extends Omit<AccessAnswer, 'blocked' | 'entitlements'>, Entitlement {}
