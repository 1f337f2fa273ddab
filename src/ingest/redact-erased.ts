import { redact } from '../provider/redact.js'
import type { ErasedIds, ErasureAct } from '../store/erasures.js'
import type { PreparedDelivery } from './prepare.js'

/** The erasures in a batch. A provider's event may bear any type: what was done by hand is known by its subject. */
export function erasuresAmong(deliveries: readonly PreparedDelivery[]): readonly ErasureAct[] {
  return deliveries.flatMap(({ environment, normalized }) =>
    normalized.ok && normalized.event.subject === 'manual' && normalized.event.type === 'manual.erased'
      ? [{ ...normalized.event, environment }]
      : [],
  )
}

/**
 * Takes out of deliveries what they say about people who are erased, before anything of it is stored. The hash stays
 * that of what came, by which it is known when it comes again.
 * @param acts erasures in the same batch
 */
export function redactErased(
  deliveries: readonly PreparedDelivery[],
  erased: ErasedIds,
  acts: readonly ErasureAct[],
  now: number,
): readonly PreparedDelivery[] {
  if (erased.size === 0 && acts.length === 0) return deliveries
  const ids = new Map(erased)
  for (const { environment, customerId } of acts) {
    ids.set(environment, new Set(ids.get(environment)).add(customerId))
  }
  return deliveries.map((one) => withoutErased(one, ids.get(one.environment) ?? NOBODY, now))
}

/** The same of new deliveries that name nobody, once it is known to whose sources they belong. */
export function redactOwned(
  deliveries: readonly PreparedDelivery[],
  ownerOf: (eventId: string) => string | null | undefined,
  erased: ErasedIds,
  now: number,
): readonly PreparedDelivery[] {
  if (erased.size === 0) return deliveries
  return deliveries.map((one) => {
    if (!one.normalized.ok || one.normalized.event.customerId !== null) return one
    const owner = ownerOf(one.normalized.event.id) ?? null
    return owner === null ? one : withoutErased(one, erased.get(one.environment) ?? NOBODY, now, owner)
  })
}

const NOBODY: ReadonlySet<string> = new Set()

function withoutErased(
  delivery: PreparedDelivery,
  erased: ReadonlySet<string>,
  now: number,
  owner: string | null = null,
): PreparedDelivery {
  const { normalized, body, removed } = delivery
  const event = normalized.ok ? normalized.event : null
  const left = redact({ event, owner, body }, erased)
  if (left === null) return delivery
  return {
    ...delivery,
    normalized: left.event === null ? normalized : { ok: true, event: left.event },
    body: left.body,
    ...(left.removed !== null && {
      removed: { why: left.removed, at: now, bytes: removed?.bytes ?? body?.byteLength ?? 0 },
    }),
  }
}
