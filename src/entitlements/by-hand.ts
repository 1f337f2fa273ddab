/* Changes by hand to a customer: grants, blocks and erasures. */

import type { ManualEvent } from '../provider/event.js'
import { compareByTime } from '../provider/order.js'
import { createIntervalTracker, lastsUntil } from './intervals.js'
import type {
  AccessInterval,
  Block,
  Erasure,
  GrantAct,
  GrantByHand,
  Instant,
  SourceKey,
  SourceState,
} from './model.js'
import type { Observe } from './reasons.js'

/** All grants by hand of one product to one customer are one source. */
export function manualSource({ customerId, productId }: GrantAct): SourceKey {
  // Ids may contain any character: encoding keeps the separator out of both.
  return { kind: 'manual', id: `${encodeURIComponent(customerId)}/${encodeURIComponent(productId)}` }
}

/**
 * Folds grants and revocations by hand: access from a grant until it is revoked, or reaches its own end.
 * A later grant replaces the end of the previous one. The policy does not apply.
 */
export function foldGrants(acts: readonly GrantAct[], observe?: Observe) {
  const tracker = createIntervalTracker()
  const grantsByHand: GrantByHand[] = []
  for (const event of [...acts].sort(compareByTime)) {
    const { id: eventId, type, productId, createdAt: at, until } = event
    const cause = { reason: 'revoked', eventId } as const
    if (type === 'manual.revoked') {
      const changes = tracker.see(at, null, cause)
      observe?.({ event, row: null, note: { code: changes.length > 0 ? 'revoked' : 'not_granted' }, changes })
    } else {
      const reason = 'completed'
      const end = until === null ? null : ({ at: until, reason, eventId } as const)
      const changes = [...tracker.see(at, { productId, end }, cause)]
      if (until !== null && until > at) changes.push({ code: 'end_set', reason, at: until })
      grantsByHand.push({ at, eventId })
      observe?.({ event, row: null, note: { code: 'granted', until }, changes })
    }
  }
  return { intervals: tracker.intervals(), grantsByHand }
}

/**
 * Folds one customer's block events into all past and present blocks: a pure function of the set of events.
 * Blocking twice is one block; lifting the block on every product also lifts blocks on single products.
 */
function foldBlocks(events: readonly ManualEvent[]): readonly Block[] {
  let blocks: readonly Block[] = []
  for (const { type, productId, createdAt: at, actor, reason } of [...events].sort(compareByTime)) {
    const isSame = (block: Block): boolean => isInForce(block) && block.productId === productId
    if (type === 'manual.blocked' && !blocks.some(isSame)) {
      blocks = [...blocks, { productId, from: at, until: null, actor, reason }]
    }
    if (type === 'manual.unblocked') {
      const isLifted = (block: Block): boolean => isInForce(block) && (productId === null || isSame(block))
      blocks = blocks.map((block) => (isLifted(block) ? { ...block, until: at } : block))
    }
  }
  return blocks
}

/**
 * The blocks on one product that had begun by an instant, in force or lifted by then.
 * Now is never before the newest change by hand.
 */
export function blocksOn(productId: string | null, blocks: readonly Block[], instant: Instant) {
  const newestAt = Math.max(...blocks.map(({ from, until }) => until ?? from))
  const at = 'at' in instant ? instant.at : Math.max(instant.now, newestAt)
  return blocks
    .filter((block) => block.from <= at && (block.productId === null || block.productId === productId))
    .map((block) => (block.until !== null && block.until > at ? { ...block, until: null } : block))
}

export function isInForce({ until }: Block): boolean {
  return until === null
}

/** Changes by hand to a customer, except grants. */
export interface ActsOnCustomer {
  readonly blocks: readonly Block[]
  readonly erasures: readonly Erasure[]
}

const NO_ACTS: ActsOnCustomer = { blocks: [], erasures: [] }

/** Every block and erasure of one customer, in order: a pure function of the set of changes by hand. */
export function foldActs(events: readonly ManualEvent[] = []): ActsOnCustomer {
  if (events.length === 0) return NO_ACTS
  const erasures = events
    .filter(({ type }) => type === 'manual.erased')
    .sort(compareByTime)
    .map(({ createdAt: at, id: eventId }) => ({ at, eventId }))
  return { blocks: foldBlocks(events), erasures }
}

/**
 * What a source gives an erased customer: each stretch of access that began earlier ends at the erasure, despite
 * renewals and plan changes. Later access counts, and a manual grant begins access again.
 */
export function afterErasures(source: SourceState, erasures: readonly Erasure[]): SourceState {
  if (erasures.length === 0) return source
  const intervals = erasures.reduce(
    (left, erasure) => endAt(left, erasure, source.grantsByHand ?? []),
    source.intervals,
  )
  // An answer about now includes the erasure even if the clock was set back since.
  const newestAt = Math.max(source.newestAt, ...erasures.map(({ at }) => at))
  return { ...source, intervals, newestAt }
}

function endAt(
  intervals: readonly AccessInterval[],
  { at, eventId }: Erasure,
  grants: readonly GrantByHand[],
): readonly AccessInterval[] {
  let continuousUntil = at
  return intervals.flatMap((interval) => {
    const { from, until } = interval
    const isBegunBefore = from < at && lastsUntil(interval) > at
    // Adjacent intervals of different plans are one stretch.
    const continues = from >= at && from === continuousUntil && continuousUntil > at
    if (!isBegunBefore && !continues) return [interval]
    continuousUntil = lastsUntil(interval)
    const before = isBegunBefore ? [{ ...interval, until: at, reason: 'revoked' as const, eventId }] : []
    const again = grants.find((grant) => grant.at >= at && grant.at >= from && grant.at < continuousUntil)
    if (again === undefined) return before
    continuousUntil = at
    return [...before, { ...interval, from: again.at, ...(until === null && { eventId: again.eventId }) }]
  })
}
