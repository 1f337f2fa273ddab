import type { AccessInterval, Entitlement, EntitlementStatus, SourceState, SourceView } from './model.js'
import { compareText } from './order.js'
import { type Instant, instantFor, viewSource } from './source-view.js'

/** What one customer may use, product by product in order of their ids: the union of the customer's sources. */
export function entitlementsOf(sources: readonly SourceState[], instant: Instant): Entitlement[] {
  const products = new Set(sources.flatMap(({ intervals }) => intervals.map(({ productId }) => productId)))
  return [...products]
    .sort(compareText)
    .map((productId) => entitlementOf(productId, sources, instant))
    .filter(({ status }) => status !== 'none')
}

/** Whether the customer of these sources may use one product: active when any source is. */
export function entitlementOf(
  productId: string,
  sources: readonly SourceState[],
  instant: Instant,
): Entitlement {
  const views = sources
    .map((source) => viewSource(source, productId, instantFor(source, instant)))
    .filter((view) => view !== null)
    .sort((a, b) => compareText(a.kind, b.kind) || compareText(a.id, b.id))
  const active = views.filter((view) => view.active)
  const isActive = active.length > 0
  return {
    productId,
    active: isActive,
    status: isActive ? statusOfActive(active) : statusOfEnded(views),
    since: isActive ? beginningOfStretch(active, intervalsOf(sources, productId)) : null,
    until: latestUntil(isActive ? active : views),
    pastDue: active.some(({ pastDue }) => pastDue),
    sources: views,
  }
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

function latestUntil(views: readonly SourceView[]): number | null {
  let latest: number | null = null
  for (const { until } of views) {
    if (until === null) return null
    if (latest === null || until > latest) latest = until
  }
  return latest
}

function intervalsOf(sources: readonly SourceState[], productId: string): AccessInterval[] {
  return sources.flatMap(({ intervals }) => intervals.filter((interval) => interval.productId === productId))
}

/** Follows the running access back through every interval that reaches up to where it began. */
function beginningOfStretch(
  active: readonly SourceView[],
  intervals: readonly AccessInterval[],
): number | null {
  let since = Math.min(...active.map((view) => Number(view.since)))
  const latestFirst = [...intervals].sort((a, b) => (b.until ?? Infinity) - (a.until ?? Infinity))
  for (const { from, until } of latestFirst) {
    if (from < since && (until === null || until >= since)) since = from
  }
  return since
}
