import type { NormalizedEvent } from '../provider/event.js'
import { parseJsonBody, readAgainJson } from '../provider/json.js'
import { scrubEvent } from '../provider/scrub-event.js'
import { type ErasedPeople, withholdErased } from '../provider/withhold-erased.js'
import { sourceKey } from '../store/keys.js'
import type { FoldedEvents } from './fold-sources.js'
import type { PreparedDelivery } from './prepare.js'

/**
 * Takes out of deliveries what they tell of people who are erased, before anything of it is stored. The hash stays that
 * of what came, by which it is known when it comes again.
 * @returns what is stored in the place of those that tell of any
 */
export function hideErased(
  deliveries: readonly PreparedDelivery[],
  folded: FoldedEvents,
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
function ownersIn({ sources, changes }: FoldedEvents): (eventId: string) => string | null {
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
  if (body === null) return null
  const event = normalized.ok ? normalized.event : null
  const customerId = event?.customerId ?? owner
  const isTheirs = customerId !== null && people.isErased(customerId)
  if (headers === null) return isTheirs && event !== null ? rewritten(delivery, body, event, now) : null
  const withheld = withholdErased(body, customerId, people, normalized.ok ? readAgainJson : parseJsonBody)
  if (withheld === null) return null
  const isAllTheirs = isTheirs || withheld.why === 'erased'
  return {
    ...delivery,
    body: withheld.body,
    removed: { why: withheld.why, at: now, bytes: body.byteLength },
    normalized: isAllTheirs && event !== null ? { ok: true, event: scrubEvent(event) } : normalized,
  }
}

/** What was done by hand is its event and nothing else: it is stored as what is left of that. */
function rewritten(
  delivery: PreparedDelivery,
  body: Buffer,
  event: NormalizedEvent,
  now: number,
): PreparedDelivery | null {
  const left = scrubbedAct(event)
  if (left.equals(body)) return null
  return {
    ...delivery,
    body: left,
    removed: { why: 'redacted', at: now, bytes: body.byteLength },
    normalized: { ok: true, event: scrubEvent(event) },
  }
}

/** What is left of an act by hand, as it is stored. */
export function scrubbedAct(event: NormalizedEvent): Buffer {
  return Buffer.from(JSON.stringify(scrubEvent(event)))
}
