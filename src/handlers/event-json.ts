import type {
  BodyRemoval,
  OtherBody,
  RemovedOriginal,
  StoredEvent,
  StoredEventDetail,
} from '../entitlements/stored-event.js'
import type { NormalizedEvent } from '../provider/event.js'
import { iso, isoOrNull } from './entitlement-json.js'

/** A stored event as it goes over the wire: times are ISO 8601 UTC with milliseconds. */
export function storedEventJson(event: StoredEvent) {
  return {
    id: event.id,
    environment: event.environment,
    endpoint: event.endpoint,
    generation: event.generation,
    type: event.type,
    disposition: event.disposition,
    reason: event.reason,
    createdAt: isoOrNull(event.createdAt),
    receivedAt: iso(event.receivedAt),
    lastReceivedAt: iso(event.lastReceivedAt),
    deliveries: event.deliveries,
    customerId: event.customerId,
    source: event.source,
    conflicts: event.conflicts,
    normalizerVersion: event.normalizerVersion,
    bodySha256: event.bodySha256,
    bodyBytes: event.bodyBytes,
    bodyRemoved: originalJson(event.bodyRemoved),
  }
}

/** The same with all else that is known of it but its bytes. */
export function eventDetailJson(event: StoredEventDetail) {
  return {
    ...storedEventJson(event),
    reasonText: event.reasonText,
    normalized: event.normalized === null ? null : normalizedJson(event.normalized),
    headers: event.headers,
    otherBodies: event.otherBodies.map(otherBodyJson),
  }
}

/** What the event says, in the words that everything else goes by. */
function normalizedJson(event: NormalizedEvent) {
  return {
    ...event,
    createdAt: iso(event.createdAt),
    ...('expiresAt' in event ? { expiresAt: isoOrNull(event.expiresAt) } : {}),
    ...('until' in event ? { until: isoOrNull(event.until) } : {}),
  }
}

function otherBodyJson({ sha256, bytes, endpoint, receivedAt, deliveries, removed }: OtherBody) {
  return { sha256, bytes, endpoint, receivedAt: iso(receivedAt), deliveries, removed: removalJson(removed) }
}

function originalJson(removed: RemovedOriginal | null) {
  return removed && { why: removed.why, at: iso(removed.at), sha256: removed.sha256, bytes: removed.bytes }
}

function removalJson(removed: BodyRemoval | null) {
  return removed && { why: removed.why, at: iso(removed.at) }
}
