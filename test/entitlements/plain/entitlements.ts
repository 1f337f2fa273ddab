import type { AccessInterval, EntitlementStatus, SourceKey } from '../../../src/entitlements/model.js'
import type { Policy } from '../../../src/entitlements/policy.js'
import type { NormalizedEvent } from '../../../src/provider/event.js'
import { plainCustomer } from './held.js'
import { byText } from './order.js'
import { plainIntervals } from './plain-fold.js'
import { isPastDue, showsCancelAtPeriodEnd } from './shown.js'
import { readSource } from './source.js'

/** One source and all the events that belong to it. */
export interface PlainSourceEvents {
  readonly key: SourceKey
  readonly events: readonly NormalizedEvent[]
  readonly policy: Policy
}

export interface PlainEntitlement {
  readonly customerId: string
  readonly productId: string
  readonly active: boolean
  readonly status: EntitlementStatus
  readonly since: number | null
  readonly until: number | null
  readonly pastDue: boolean
}

/** One interval of a source, and what its source shows at the instant it answers for. */
interface Piece extends AccessInterval {
  readonly sourceId: string
  readonly customerId: string
  readonly active: boolean
  readonly cancelAtPeriodEnd: boolean
  readonly pastDue: boolean
}

/** Who has what at `now`: one entitlement for each customer and product ever given, in that order. */
export function plainEntitlements(
  sources: readonly PlainSourceEvents[],
  now: number,
): readonly PlainEntitlement[] {
  const groups = new Map<string, Piece[]>()
  for (const piece of sources.flatMap((source) => piecesOf(source, now))) {
    const pair = JSON.stringify([piece.customerId, piece.productId])
    groups.set(pair, [...(groups.get(pair) ?? []), piece])
  }
  return [...groups.values()]
    .flatMap(unionOf)
    .sort((one, other) => byText(one.customerId, other.customerId) || byText(one.productId, other.productId))
}

function piecesOf({ key, events, policy }: PlainSourceEvents, now: number): readonly Piece[] {
  const customerId = plainCustomer(events)
  if (customerId === null) return []
  const source = readSource(events, key, policy)
  // The provider's clock may run ahead of ours.
  const instant = Math.max(now, ...source.events.map(({ createdAt }) => createdAt))
  const intervals = plainIntervals(events, key, policy)
  return intervals.map((interval) => ({
    ...interval,
    sourceId: `${key.kind}:${key.id}`,
    customerId,
    active: interval.until === null || interval.until > instant,
    cancelAtPeriodEnd: showsCancelAtPeriodEnd(source, instant),
    pastDue: isPastDue(source, intervals, instant),
  }))
}

function unionOf(pieces: readonly Piece[]): readonly PlainEntitlement[] {
  const lastToEnd = [...pieces].sort(
    (one, other) => endOf(one) - endOf(other) || byText(one.sourceId, other.sourceId),
  )
  const last = lastToEnd.at(-1)
  if (!last) return []
  const { customerId, productId, until } = last
  const running = pieces.filter(({ active }) => active)
  if (running.length === 0) {
    const status = last.reason ?? 'none'
    return [{ customerId, productId, active: false, status, since: null, until, pastDue: false }]
  }
  const isEnding = running.every((piece) => piece.until !== null || piece.cancelAtPeriodEnd)
  return [
    {
      customerId,
      productId,
      active: true,
      status: isEnding ? 'ending' : 'active',
      since: beginningOfStretch(pieces, Math.min(...running.map(({ from }) => from))),
      until,
      pastDue: running.some(({ pastDue }) => pastDue),
    },
  ]
}

/** Goes back for as long as another piece reaches the beginning found so far. */
function beginningOfStretch(pieces: readonly Piece[], since: number): number {
  const earlier = pieces.filter((piece) => piece.from < since && endOf(piece) >= since)
  return earlier.length === 0
    ? since
    : beginningOfStretch(pieces, Math.min(...earlier.map(({ from }) => from)))
}

function endOf({ until }: AccessInterval): number {
  return until ?? Number.POSITIVE_INFINITY
}
