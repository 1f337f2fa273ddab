/* Keeps the data of erased people out of what is stored. */

import type { Environment, ManualEvent } from '../provider/event.js'
import { redact } from '../provider/redact.js'
import type { ErasedIds, ErasureAct } from '../store/erasures.js'
import type { FoldedBatch } from './fold-batch.js'
import type { Known } from './known.js'
import type { PreparedDelivery } from './prepare.js'
import { actIn, separate } from './repeats.js'

export const NOBODY: ReadonlySet<string> = new Set()

/**
 * Removes the data of erased people from deliveries, before anything is stored. The hash stays that of the original,
 * so that a repeated delivery is recognised.
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

/** The same for new deliveries that name nobody, once the owners of their sources are known. */
export function redactOwned(
  deliveries: readonly PreparedDelivery[],
  ownerOf: (eventId: string) => string | null | undefined,
  erased: ReadonlySet<string>,
  now: number,
): readonly PreparedDelivery[] {
  if (erased.size === 0) return deliveries
  return deliveries.map((one) => {
    if (!one.normalized.ok || one.normalized.event.customerId !== null) return one
    const owner = ownerOf(one.normalized.event.id) ?? null
    return owner === null ? one : withoutErased(one, erased, now, owner)
  })
}

/** The erasures that this batch stores: of changes with one id, the first counts. */
export async function newErasures(
  knownOf: (environment: Environment) => Known,
  dated: readonly PreparedDelivery[],
): Promise<readonly ErasureAct[]> {
  const acts: ErasureAct[] = []
  for (const [environment, own] of Map.groupBy(dated, (one) => one.environment)) {
    if (own.every((one) => erasureIn(one) === null)) continue
    const { fresh } = separate(await knownOf(environment).hashes(own.map(({ eventId }) => eventId)), own)
    acts.push(...fresh.flatMap((one) => erasureIn(one) ?? []).map((act) => ({ ...act, environment })))
  }
  return acts
}

function erasureIn({ normalized }: PreparedDelivery): ManualEvent | null {
  const act = actIn(normalized)
  return act?.type === 'manual.erased' ? act : null
}

/** Erased customers to whom stored events now turn out to belong: those still hold personal data. */
export function erasedWithMore({ changes }: FoldedBatch, erased: ReadonlySet<string>): readonly string[] {
  return changes.flatMap(({ after, hasGained }) => {
    const customerId = after?.customerId ?? null
    return hasGained && customerId !== null && erased.has(customerId) ? [customerId] : []
  })
}

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
