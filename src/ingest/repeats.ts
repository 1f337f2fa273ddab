/* Which deliveries repeat an event, and which of those are the same. */

import type { ManualEvent, Normalized, NormalizedEvent } from '../provider/event.js'
import type { Known } from './known.js'
import type { PreparedDelivery } from './prepare.js'

/** Separates new events from stored and repeated ones; of repeated ones in a batch, the first counts. */
export function separate(stored: ReadonlyMap<string, string>, prepared: readonly PreparedDelivery[]) {
  const seen = new Set(stored.keys())
  const fresh: PreparedDelivery[] = []
  const repeated: PreparedDelivery[] = []
  for (const one of prepared) {
    if (seen.has(one.eventId)) repeated.push(one)
    else fresh.push(one)
    seen.add(one.eventId)
  }
  return { fresh, repeated }
}

/** A provider's event may have any type: changes by hand are recognised by their subject. */
export function actIn(normalized: Normalized): ManualEvent | null {
  return normalized.ok && normalized.event.subject === 'manual' ? normalized.event : null
}

/**
 * Leaves out repeats of what Latchkey wrote itself. They are the same event, though the bodies differ: those of changes
 * by hand in their instants, those of reports in what else the record showed when it was read.
 * @param fresh the new events of the batch
 */
export async function withoutSameActs(
  known: Known,
  repeated: readonly PreparedDelivery[],
  fresh: readonly NormalizedEvent[],
): Promise<readonly PreparedDelivery[]> {
  const others: PreparedDelivery[] = []
  for (const one of repeated) {
    if (one.headers === 'reported') continue
    const act = actIn(one.normalized)
    const isSame = act !== null && (await isDone(known, act, fresh))
    if (!isSame) others.push(one)
  }
  return others
}

async function isDone(known: Known, act: ManualEvent, fresh: readonly NormalizedEvent[]): Promise<boolean> {
  const { customerId, id } = act
  const stored = (await known.acts([customerId])).get(customerId) ?? []
  const done = [...stored, ...fresh].find((event) => event.subject === 'manual' && event.id === id)
  return (
    done !== undefined &&
    SAME_IN_AN_ACT.every((name) => name in done && done[name as keyof typeof done] === act[name])
  )
}

/** An erasure removes all else. */
const SAME_IN_AN_ACT = ['type', 'customerId', 'productId', 'until'] as const
