import type { BodyRemoval, StoredEvent, StoredEventDetail } from '../entitlements/stored-event.js'
import type { NormalizedEvent } from '../provider/event.js'
import { iso, isoOrNull } from './answers.js'

/** A stored event as it goes over the wire: times are ISO 8601 UTC with milliseconds. */
export type StoredEventJson = ReturnType<typeof storedEventJson>
export type EventDetailJson = ReturnType<typeof eventDetailJson>

export function storedEventJson(event: StoredEvent) {
  return {
    ...event,
    createdAt: isoOrNull(event.createdAt),
    receivedAt: iso(event.receivedAt),
    lastReceivedAt: iso(event.lastReceivedAt),
    bodyRemoved: event.bodyRemoved && removalJson(event.bodyRemoved),
  }
}

/** The same with everything else that is known of it but its bytes. */
export function eventDetailJson(event: StoredEventDetail) {
  const { reasonText, normalized, headers, otherBodies, ...stored } = event
  return {
    ...storedEventJson(stored),
    reasonText,
    normalized: normalized && normalizedJson(normalized),
    headers,
    otherBodies: otherBodies.map((other) => ({
      ...other,
      receivedAt: iso(other.receivedAt),
      removed: other.removed && removalJson(other.removed),
    })),
  }
}

/** What the event says, in the words that everything else uses. */
function normalizedJson(event: NormalizedEvent) {
  return {
    ...event,
    createdAt: iso(event.createdAt),
    ...('expiresAt' in event ? { expiresAt: isoOrNull(event.expiresAt) } : {}),
    ...('until' in event ? { until: isoOrNull(event.until) } : {}),
  }
}

function removalJson<Removal extends BodyRemoval>(removed: Removal) {
  return { ...removed, at: iso(removed.at) }
}
