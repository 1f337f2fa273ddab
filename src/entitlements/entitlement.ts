/* What sources show of themselves, and a customer's sources together as entitlements at an instant. */

import { compareText } from '../provider/order.js'
import { blocksOn, isInForce } from './by-hand.js'
import { lastsUntil } from './intervals.js'
import {
  type AccessAnswer,
  type AccessInterval,
  type AccessSnapshot,
  type Block,
  type Entitlement,
  type EntitlementStatus,
  type Instant,
  type KeptSubscription,
  type ProductAnswer,
  type Shown,
  type SourceState,
  type SourceView,
  SUBSCRIPTION_TYPES,
} from './model.js'

export const NOTHING_SHOWN: Shown = {
  pastDueSince: null,
  cancelAtPeriodEnd: false,
  periodEnd: null,
  providerStatus: null,
}

/** What a subscription shows after another one of its events. */
export function shownAfter(before: Shown, event: KeptSubscription): Shown {
  const { type, createdAt, cancelAtPeriodEnd, expiresAt, status } = event
  const isRenewal = SUBSCRIPTION_TYPES[type].pays === 'again'
  return {
    pastDueSince: type === 'subscription.past_due' ? createdAt : isRenewal ? null : before.pastDueSince,
    // A renewal cancels any earlier announcement of a cancellation, unless it repeats it.
    cancelAtPeriodEnd: cancelAtPeriodEnd ?? (before.cancelAtPeriodEnd && !isRenewal),
    periodEnd: expiresAt ?? before.periodEnd,
    providerStatus: status ?? before.providerStatus,
  }
}

export const NEVER_GRANTED: AccessSnapshot = { active: false, status: 'none', since: null, until: null }

export function snapshotOf({ active, status, since, until }: AccessSnapshot): AccessSnapshot {
  return { active, status, since, until }
}

const SNAPSHOT_FIELDS = Object.keys(NEVER_GRANTED) as (keyof AccessSnapshot)[]

/** Whether the change log has this change: one of `since` alone is not logged. */
export function isChange(a: AccessSnapshot, b: AccessSnapshot): boolean {
  return SNAPSHOT_FIELDS.some((name) => name !== 'since' && a[name] !== b[name])
}

/** The types of a change of access, as outbound webhooks name them. */
export const CHANGE_TYPES = ['entitlement.granted', 'entitlement.changed', 'entitlement.revoked'] as const
export type ChangeType = (typeof CHANGE_TYPES)[number]

export function typeOfChange(before: AccessSnapshot, after: AccessSnapshot): ChangeType {
  if (before.active === after.active) return 'entitlement.changed'
  return after.active ? 'entitlement.granted' : 'entitlement.revoked'
}

/**
 * What one customer may use, by product in order of id: the union of the customer's sources, without
 * blocked products.
 */
export function entitlementsOf(sources: readonly SourceState[], blocks: readonly Block[], instant: Instant) {
  const granted = sources.flatMap(({ intervals }) => intervals.map(({ productId }) => productId))
  const blocked = blocks.map(({ productId }) => productId).filter((productId) => productId !== null)
  const products = new Set([...granted, ...blocked])
  return [...products]
    .sort(compareText)
    .map((productId) => entitlementOf(productId, sources, blocks, instant))
    .filter(({ status }) => status !== 'none')
}

/** Whether the customer of these sources may use one product: some source is active, and no block is in force. */
export function entitlementOf(
  productId: string,
  sources: readonly SourceState[],
  blocks: readonly Block[],
  instant: Instant,
): Entitlement {
  const views = sources
    .map((source) => viewSource(source, productId, instantFor(source, instant)))
    .filter((view) => view !== null)
    .sort((a, b) => compareText(a.kind, b.kind) || compareText(a.id, b.id))
  const known = blocksOn(productId, blocks, instant)
  if (known.some(isInForce)) return { ...neverGranted(productId, true), sources: views }
  const active = views.filter((view) => view.active)
  const isActive = active.length > 0
  return {
    productId,
    active: isActive,
    status: isActive ? statusOfActive(active) : statusOfEnded(views),
    since: isActive ? beginningOfStretch(productId, active, sources, known) : null,
    until: latestUntil(isActive ? active : views),
    pastDue: active.some(({ pastDue }) => pastDue),
    sources: views,
  }
}

/** The answer for one product alone, listed or not. */
export function answerFor(productId: string, answer: AccessAnswer): ProductAnswer {
  const listed = answer.entitlements.find((one) => one.productId === productId)
  const entitlement = listed ?? neverGranted(productId, answer.blocked)
  return { ...partOf(answer, [entitlement]), ...entitlement }
}

/** What an answer about some of its entitlements alone begins with. */
export function partOf(
  { customerId, environment, asOf, validUntil, cursor }: AccessAnswer,
  entitlements: readonly Entitlement[],
) {
  // An answer about a given instant never changes.
  const until = validUntil === null ? null : nextChangeAfter(entitlements, asOf)
  return { customerId, environment, asOf, validUntil: until, cursor }
}

/** A product that no source of the customer ever gave and no block names. */
function neverGranted(productId: string, blocked: boolean): Entitlement {
  const status = blocked ? 'blocked' : 'none'
  return { productId, ...NEVER_GRANTED, status, pastDue: false, sources: [] }
}

/** The next instant after `now` at which time alone changes these answers; null: none is known. */
export function nextChangeAfter(entitlements: readonly Entitlement[], now: number): number | null {
  const ends = entitlements
    .flatMap(({ sources }) => sources)
    .flatMap(({ active, until }) => (active && until !== null && until > now ? [until] : []))
  return ends.length === 0 ? null : Math.min(...ends)
}

/** Ending only if everything left of it ends. */
function statusOfActive(active: readonly SourceView[]): EntitlementStatus {
  return active.every(({ until, cancelAtPeriodEnd }) => until !== null || cancelAtPeriodEnd)
    ? 'ending'
    : 'active'
}

/** Why the last source ended; of several at one instant, the last in order. */
function statusOfEnded(views: readonly SourceView[]): EntitlementStatus {
  const until = Math.max(...views.map((view) => Number(view.until)))
  return views.findLast((view) => view.until === until)?.reason ?? 'none'
}

/** Null if one of these ends is not known, or if there are none. */
export function latestUntil(views: readonly Pick<SourceView, 'until'>[]): number | null {
  const ends = views.map(({ until }) => until)
  return ends.length === 0 || ends.includes(null) ? null : Math.max(...ends.map(Number))
}

/**
 * Follows the current access back through all adjacent intervals to its beginning. Access interrupted by a block begins
 * again when the last block on it is lifted.
 */
function beginningOfStretch(
  productId: string,
  active: readonly SourceView[],
  sources: readonly SourceState[],
  lifted: readonly Block[],
): number {
  let since = Math.min(...active.map((view) => Number(view.since)))
  const intervals = sources.flatMap((source) => source.intervals.filter((one) => one.productId === productId))
  for (const interval of intervals.sort((a, b) => lastsUntil(b) - lastsUntil(a))) {
    if (interval.from < since && lastsUntil(interval) >= since) since = interval.from
  }
  return Math.max(since, ...lifted.map(({ until }) => Number(until)))
}

export function instantFor(source: SourceState, instant: Instant): number {
  return 'at' in instant ? instant.at : Math.max(instant.now, source.newestAt)
}

/** The state of one product in one source at an instant; null if the source had not given it by then. */
export function viewSource(source: SourceState, productId: string, at: number): SourceView | null {
  const interval = source.intervals.findLast((one) => one.productId === productId && one.from <= at)
  if (interval === undefined) return null
  const active = lastsUntil(interval) > at
  const since = active ? interval.from : null
  const pastDue = active && isPastDue(source, at)
  const { id, kind, rail, cancelAtPeriodEnd, periodEnd } = source
  const { until, reason, eventId } = interval
  return { id, kind, active, since, until, rail, pastDue, cancelAtPeriodEnd, periodEnd, reason, eventId }
}

/** Past due, with unbroken access since then, to any product. */
function isPastDue({ pastDueSince, intervals }: SourceState, at: number): boolean {
  if (pastDueSince === null || pastDueSince > at) return false
  let reached = pastDueSince
  for (const interval of intervals) {
    if (interval.from <= reached) reached = Math.max(reached, lastsUntil(interval))
  }
  return reached > at
}

/**
 * Whether two states of a source, asked about now, give the same access: same customer, products and ends, and the
 * same announced end. Other fields (rail, dunning, waiting events) are not access.
 */
export function givesSameAccess(before: SourceState | null, after: SourceState | null, now: number): boolean {
  if (before === null || after === null) return before === after
  return (
    before.customerId === after.customerId &&
    before.cancelAtPeriodEnd === after.cancelAtPeriodEnd &&
    instantFor(before, { now }) === instantFor(after, { now }) &&
    // A further grant only matters during current access if an erasure came before it.
    before.grantsByHand?.length === after.grantsByHand?.length &&
    before.intervals.length === after.intervals.length &&
    before.intervals.every((interval, i) => isSame(interval, after.intervals[i]))
  )
}

function isSame(a: AccessInterval, b: AccessInterval | undefined): boolean {
  return (Object.keys(a) as (keyof AccessInterval)[]).every((name) => a[name] === b?.[name])
}

/** Of two accesses the one in force, and then the one that lasts longer; the first of two equal ones. */
export function longerLasting<Access extends Pick<Entitlement, 'active' | 'until'>>(
  a: Access,
  b: Access,
): Access {
  if (a.active !== b.active) return a.active ? a : b
  return endOf(b) > endOf(a) ? b : a
}

function endOf({ active, until }: Pick<Entitlement, 'active' | 'until'>): number {
  return until ?? (active ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY)
}
