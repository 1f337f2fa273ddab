import type { Explanation } from '../entitlements/explain.js'
import type { ExplainedEvent, ExplainedHold, ExplainedSource } from '../entitlements/explain-source.js'
import type { AccessInterval } from '../entitlements/model.js'
import { entitlementJson, iso, isoOrNull } from './entitlement-json.js'

/** An explanation as it goes over the wire: times are ISO 8601 UTC with milliseconds, in notes and changes too. */
export function explanationJson(explanation: Explanation) {
  return {
    customerId: explanation.customerId,
    productId: explanation.productId,
    environment: explanation.environment,
    asOf: iso(explanation.asOf),
    entitlement: entitlementJson(explanation.entitlement),
    summary: explanation.summary,
    sources: explanation.sources.map(sourceJson),
    held: explanation.held.map(holdJson),
    blocks: explanation.blocks.map(({ productId, from, until, sentence }) => ({
      productId,
      from: iso(from),
      until: isoOrNull(until),
      sentence,
    })),
    erasures: explanation.erasures.map(({ at, eventId, sentence }) => ({ at: iso(at), eventId, sentence })),
    ends: explanation.ends.map(({ source, at, reason, eventId, sentence }) => ({
      source,
      at: isoOrNull(at),
      reason,
      eventId,
      sentence,
    })),
  }
}

function sourceJson({ id, kind, rail, customerId, intervals, events }: ExplainedSource) {
  return {
    id,
    kind,
    rail,
    customerId,
    intervals: intervals.map(intervalJson),
    events: events.map(eventJson),
  }
}

function intervalJson({ productId, from, until, reason, eventId }: AccessInterval) {
  return { productId, from: iso(from), until: isoOrNull(until), reason, eventId }
}

function eventJson(event: ExplainedEvent) {
  return {
    id: event.id,
    type: event.type,
    createdAt: iso(event.createdAt),
    receivedAt: iso(event.receivedAt),
    disposition: event.disposition,
    row: event.row,
    note: withIsoTimes(event.note),
    changes: event.changes.map(withIsoTimes),
    sentence: event.sentence,
  }
}

function holdJson({ id, type, createdAt, receivedAt, source, reason, sentence }: ExplainedHold) {
  return { id, type, createdAt: iso(createdAt), receivedAt: iso(receivedAt), source, reason, sentence }
}

/** The only numbers in notes and changes are instants. */
function withIsoTimes(told: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(told).map(([name, value]) => [name, typeof value === 'number' ? iso(value) : value]),
  )
}
