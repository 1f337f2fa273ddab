import type { Rail } from '../provider/event.js'
import { foldManual, grantsOf } from './fold-manual.js'
import { foldPayment } from './fold-payment.js'
import { heldEvents } from './held.js'
import { intervalsOf, type TrackerState } from './intervals.js'
import type { GrantAct } from './manual-source.js'
import type { SourceKey, SourceKind, SourceState } from './model.js'
import { newestTold } from './order.js'
import type { Policy } from './policy.js'
import type { KeptPayment, SourceEvent } from './reading.js'
import { readSubscription } from './subscription-reading.js'
import { NOTHING_SHOWN, type Shown, walkSubscription } from './walk-subscription.js'

/** The events that sources are folded from, of every kind. */
export type FoldableEvent = SourceEvent | GrantAct

export interface FoldedSource {
  readonly state: SourceState
}

/**
 * Folds the events of one source into its state.
 *
 * Deliveries come late, twice and out of order, so events are walked in (createdAt, rank, id) order,
 * whatever order they arrived in. Same set and policy: same state.
 * @param events all stored events of the source, each once, in any order
 */
export function foldSource(
  { kind, id }: SourceKey,
  events: readonly FoldableEvent[],
  policy: Policy,
): FoldedSource {
  const customerId = newestTold(events, (event) => event.customerId)
  let newestAt = Number.NEGATIVE_INFINITY
  for (const { createdAt } of events) newestAt = Math.max(newestAt, createdAt)
  const sent = events.filter(isSent)
  const acts = kind === 'manual' ? events.filter(isAct) : []
  const { rail, productId, access, shown, cyclesWithoutPayment } = foldKind(kind, sent, acts, policy)
  const held = heldEvents(sent, { customerId, productId }, policy)
  const intervals = intervalsOf(access)
  const { pastDueSince, cancelAtPeriodEnd, periodEnd, providerStatus } = shown
  const state: SourceState = {
    kind,
    id,
    customerId,
    newestAt,
    held,
    rail,
    intervals,
    pastDueSince,
    cancelAtPeriodEnd,
    periodEnd,
    providerStatus,
    cyclesWithoutPayment,
  }
  return { state: kind === 'manual' ? { ...state, grantsByHand: grantsOf(acts) } : state }
}

/** What the events of every kind of source come down to. */
interface Folded {
  readonly rail: Rail
  readonly productId: string | null
  readonly access: TrackerState
  readonly shown: Shown
  readonly cyclesWithoutPayment: number
}

function foldKind(
  kind: SourceKind,
  sent: readonly SourceEvent[],
  acts: readonly GrantAct[],
  policy: Policy,
): Folded {
  switch (kind) {
    case 'subscription':
      return walkSubscription(readSubscription(sent, policy), policy)
    case 'payment': {
      const { rail, productId, access } = foldPayment(sent.filter(isPayment), policy)
      return { rail, productId, access, shown: NOTHING_SHOWN, cyclesWithoutPayment: 0 }
    }
    case 'manual': {
      const access = foldManual(acts)
      return { rail: 'unknown', productId: null, access, shown: NOTHING_SHOWN, cyclesWithoutPayment: 0 }
    }
    default:
      return kind satisfies never
  }
}

/** Whether the provider sent it: then the policy decides what follows from it. */
function isSent(event: FoldableEvent): event is SourceEvent {
  return event.subject !== 'manual'
}

function isAct(event: FoldableEvent): event is GrantAct {
  return event.subject === 'manual'
}

function isPayment(event: SourceEvent): event is KeptPayment {
  return event.subject === 'payment'
}
