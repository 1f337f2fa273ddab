import { sourceKey } from '../entitlements/source-of.js'
import type { NormalizedEvent } from '../provider/event.js'
import { parseJsonBody, readAgainJson } from '../provider/json.js'
import type { ErasedPeople } from '../provider/known-people.js'
import { redactEvent } from '../provider/redact-event.js'
import { scrubEvent } from '../provider/scrub-event.js'
import { withholdErased } from '../provider/withhold-erased.js'
import type { FoldedBatch } from './fold-batch.js'
import type { PreparedDelivery } from './prepare.js'

/**
 * Takes out of deliveries what they tell of people who are erased, before anything of it is stored. The hash stays that
 * of what came, by which it is known when it comes again.
 * @returns what is stored in the place of those that tell of any
 */
export function hideErased(
  deliveries: readonly PreparedDelivery[],
  folded: FoldedBatch,
  people: ErasedPeople | null,
  now: number,
): ReadonlyMap<PreparedDelivery, PreparedDelivery> {
  const hidden = new Map<PreparedDelivery, PreparedDelivery>()
  if (people === null) return hidden
  const ownerOf = ownersIn(folded)
  for (const delivery of deliveries) {
    const left = leftOf(delivery, ownerOf(delivery.eventId), people, now)
    if (left !== null) hidden.set(delivery, left)
  }
  return hidden
}

/** Whose the source is that an event belongs to, as it stands with the new events. */
function ownersIn({ sources, changes }: FoldedBatch): (eventId: string) => string | null {
  const owners = new Map(changes.map(({ key, after }) => [sourceKey(key), after?.customerId ?? null]))
  return (eventId) => {
    const source = sources.get(eventId) ?? null
    return source === null ? null : (owners.get(sourceKey(source)) ?? null)
  }
}

/** Null: it may be stored as it came. */
function leftOf(
  delivery: PreparedDelivery,
  owner: string | null,
  people: ErasedPeople,
  now: number,
): PreparedDelivery | null {
  const { body, headers, normalized } = delivery
  const event = normalized.ok ? normalized.event : null
  const customerId = event?.customerId ?? owner
  const isTheirs = customerId !== null && people.isErased(customerId)
  if (headers === null || body === null) {
    const left = event && withoutErasedIn(event, customerId, isTheirs, people)
    if (left === null || isSame(left, event)) return null
    return body === null
      ? { ...delivery, normalized: { ok: true, event: left } }
      : rewritten(delivery, body, left, now)
  }
  const withheld = withholdErased(body, customerId, people, normalized.ok ? readAgainJson : parseJsonBody)
  if (withheld === null) return null
  const isAllTheirs = isTheirs || withheld.why === 'erased'
  return {
    ...delivery,
    body: withheld.body,
    removed: { why: withheld.why, at: now, bytes: delivery.removed?.bytes ?? body.byteLength },
    normalized:
      event === null
        ? normalized
        : { ok: true, event: withoutErasedIn(event, customerId, isAllTheirs, people) },
  }
}

/**
 * What stays of an event that tells of people who are erased.
 * @param isAllTheirs whether it is about nobody else
 */
export function withoutErasedIn(
  event: NormalizedEvent,
  customerId: string | null,
  isAllTheirs: boolean,
  people: ErasedPeople,
): NormalizedEvent {
  return isAllTheirs ? scrubEvent(event) : redactEvent(event, customerId, people)
}

/** What was done by hand is its event and nothing else: it is stored as what is left of that. */
function rewritten(
  delivery: PreparedDelivery,
  body: Buffer,
  event: NormalizedEvent,
  now: number,
): PreparedDelivery {
  return {
    ...delivery,
    body: bodyOfAct(event),
    removed: { why: 'redacted', at: now, bytes: body.byteLength },
    normalized: { ok: true, event },
  }
}

/** An act by hand, as it is stored. */
export function bodyOfAct(event: NormalizedEvent): Buffer {
  return Buffer.from(JSON.stringify(event))
}

export function isSame(event: NormalizedEvent | null, other: NormalizedEvent | null): boolean {
  return JSON.stringify(event) === JSON.stringify(other)
}
