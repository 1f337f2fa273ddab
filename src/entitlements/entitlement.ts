import type { AccessAnswer } from './answer.js'
import { type Block, blocksOn, isStanding } from './blocks.js'
import { lastsUntil } from './intervals.js'
import type { AccessInterval, Entitlement, EntitlementStatus, SourceState, SourceView } from './model.js'
import { compareText } from './order.js'
import { type Instant, instantFor, viewSource } from './source-view.js'

/**
 * What one customer may use, product by product in order of their ids: the union of the customer's sources, less
 * what is blocked.
 */
export function entitlementsOf(
  sources: readonly SourceState[],
  blocks: readonly Block[],
  instant: Instant,
): Entitlement[] {
  const granted = sources.flatMap(({ intervals }) => intervals.map(({ productId }) => productId))
  const blocked = blocks.map(({ productId }) => productId).filter((productId) => productId !== null)
  const products = new Set([...granted, ...blocked])
  return [...products]
    .sort(compareText)
    .map((productId) => entitlementOf(productId, sources, blocks, instant))
    .filter(({ status }) => status !== 'none')
}

/** Whether the customer of these sources may use one product: active when any source is, and no block stands. */
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
  if (known.some(isStanding)) {
    return {
      productId,
      active: false,
      status: 'blocked',
      since: null,
      until: null,
      pastDue: false,
      sources: views,
    }
  }
  const active = views.filter((view) => view.active)
  const isActive = active.length > 0
  return {
    productId,
    active: isActive,
    status: isActive ? statusOfActive(active) : statusOfEnded(views),
    since: isActive
      ? sinceUnblocked(beginningOfStretch(active, intervalsOf(sources, productId)), known)
      : null,
    until: latestUntil(isActive ? active : views),
    pastDue: active.some(({ pastDue }) => pastDue),
    sources: views,
  }
}

/** What an answer says of one product, be it one that it does not list. */
export function entitlementFor(
  productId: string,
  { entitlements, blocked }: Pick<AccessAnswer, 'entitlements' | 'blocked'>,
): Entitlement {
  return entitlements.find((one) => one.productId === productId) ?? neverGranted(productId, blocked)
}

/** A product that none of the customer's sources ever gave, and that no block names. */
function neverGranted(productId: string, blocked: boolean): Entitlement {
  const status = blocked ? 'blocked' : 'none'
  return { productId, active: false, status, since: null, until: null, pastDue: false, sources: [] }
}

/** The next instant after `now` at which these answers change by the clock alone; null: none is known. */
export function nextChangeAfter(entitlements: readonly Entitlement[], now: number): number | null {
  const ends = entitlements
    .flatMap(({ sources }) => sources)
    .filter(({ active }) => active)
    .map(({ until }) => until)
    .filter((until) => until !== null && until > now)
  return ends.length === 0 ? null : Math.min(...ends.map(Number))
}

/** Ending only if all that is left of it ends. */
function statusOfActive(active: readonly SourceView[]): EntitlementStatus {
  return active.every(({ until, cancelAtPeriodEnd }) => until !== null || cancelAtPeriodEnd)
    ? 'ending'
    : 'active'
}

/** Why the source ended that ended last; of several at one instant, the last in order. */
function statusOfEnded(views: readonly SourceView[]): EntitlementStatus {
  let last: SourceView | null = null
  for (const view of views) {
    if (last === null || Number(view.until) >= Number(last.until)) last = view
  }
  return last?.reason ?? 'none'
}

/** Access that sources gave all the while begins anew where the last block on it was lifted. */
function sinceUnblocked(since: number, lifted: readonly Block[]): number {
  return Math.max(since, ...lifted.map(({ until }) => Number(until)))
}

function latestUntil(views: readonly SourceView[]): number | null {
  const ends = views.map(({ until }) => until)
  return ends.length === 0 || ends.includes(null) ? null : Math.max(...ends.map(Number))
}

function intervalsOf(sources: readonly SourceState[], productId: string): AccessInterval[] {
  return sources.flatMap(({ intervals }) => intervals.filter((interval) => interval.productId === productId))
}

/** Follows the running access back through every interval that reaches up to where it began. */
function beginningOfStretch(active: readonly SourceView[], intervals: readonly AccessInterval[]): number {
  let since = Math.min(...active.map((view) => Number(view.since)))
  const latestFirst = [...intervals].sort((a, b) => lastsUntil(b) - lastsUntil(a))
  for (const interval of latestFirst) {
    if (interval.from < since && lastsUntil(interval) >= since) since = interval.from
  }
  return since
}
