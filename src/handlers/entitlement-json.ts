import type { AccessAnswer, Entitlement, SourceView } from '../entitlements/model.js'

/** An answer as it goes over the wire: times are ISO 8601 UTC with milliseconds. */
export function accessJson(answer: AccessAnswer) {
  return {
    customerId: answer.customerId,
    environment: answer.environment,
    asOf: iso(answer.asOf),
    validUntil: isoOrNull(answer.validUntil),
    cursor: answer.cursor,
    entitlements: answer.entitlements.map(entitlementJson),
  }
}

/** An entitlement as it goes over the wire. */
export function entitlementJson(entitlement: Entitlement) {
  return {
    productId: entitlement.productId,
    active: entitlement.active,
    status: entitlement.status,
    since: isoOrNull(entitlement.since),
    until: isoOrNull(entitlement.until),
    pastDue: entitlement.pastDue,
    sources: entitlement.sources.map(sourceJson),
  }
}

/** A source as it goes over the wire. */
export function sourceJson(source: SourceView) {
  return {
    id: source.id,
    kind: source.kind,
    active: source.active,
    since: isoOrNull(source.since),
    until: isoOrNull(source.until),
    rail: source.rail,
    pastDue: source.pastDue,
    cancelAtPeriodEnd: source.cancelAtPeriodEnd,
    periodEnd: isoOrNull(source.periodEnd),
    reason: source.reason,
    eventId: source.eventId,
  }
}

/** An instant as it goes over the wire. */
export function iso(instant: number): string {
  return new Date(instant).toISOString()
}

export function isoOrNull(instant: number | null): string | null {
  return instant === null ? null : iso(instant)
}
