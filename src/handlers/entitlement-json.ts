import type { ExplainedEvent, ExplainedHold, ExplainedSource, Explanation } from '../entitlements/explain.js'
import type { AccessAnswer, AccessInterval, Entitlement, SourceView } from '../entitlements/model.js'
import type { KnownCustomer, KnownSource } from '../store/account.js'
import type { AccessSnapshot, ListedChange } from '../store/changes.js'
import type { Fact } from '../store/customer-facts.js'

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
function sourceJson(source: SourceView) {
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

/** All that is known of a person, as it goes over the wire: every fact with since when, and by which event. */
export function customerJson(customer: KnownCustomer) {
  const { facts, metadata, references, blocks, deletedAt, erasedAt } = customer
  return {
    customerId: customer.customerId,
    environment: customer.environment,
    identities: {
      email: factJson(facts.email),
      name: factJson(facts.name),
      communityId: factJson(facts.communityId),
      communityUsername: factJson(facts.communityUsername),
      messengerId: factJson(facts.messengerId),
      messengerUsername: factJson(facts.messengerUsername),
    },
    references: {
      externalRef: factJson(facts.externalRef),
      metadata: Object.fromEntries(Object.entries(metadata).map(([key, fact]) => [key, factJson(fact)])),
      all: references,
    },
    deletedAt: isoOrNull(deletedAt),
    erasedAt: isoOrNull(erasedAt),
    blocks: blocks.map(({ productId, from, until }) => ({
      productId,
      since: iso(from),
      until: isoOrNull(until),
    })),
    sources: customer.sources.map(knownSourceJson),
  }
}

function factJson(fact: Fact | undefined) {
  return fact === undefined ? null : { value: fact.value, since: iso(fact.at), eventId: fact.by }
}

function knownSourceJson({ source, productId, view }: KnownSource) {
  const shown = view === null ? neverGave(source) : sourceJson(view)
  return { productId, ...shown, providerStatus: source.providerStatus }
}

function neverGave({ id, kind, rail, cancelAtPeriodEnd, periodEnd }: KnownSource['source']) {
  return {
    id,
    kind,
    active: false,
    since: null,
    until: null,
    rail,
    pastDue: false,
    cancelAtPeriodEnd,
    periodEnd: isoOrNull(periodEnd),
    reason: null,
    eventId: null,
  }
}

/** A change as it goes over the wire. */
export function changeJson({
  cursor,
  at,
  environment,
  customerId,
  productId,
  before,
  after,
  cause,
}: ListedChange) {
  return {
    cursor,
    at: iso(at),
    environment,
    customerId,
    productId,
    before: snapshotJson(before),
    after: snapshotJson(after),
    cause: { kind: cause.kind, eventId: cause.eventId },
  }
}

function snapshotJson({ active, status, since, until }: AccessSnapshot) {
  return { active, status, since: isoOrNull(since), until: isoOrNull(until) }
}

/** An explanation as it goes over the wire: times are ISO 8601 UTC with milliseconds, in notes and changes too. */
export function explanationJson(explanation: Explanation) {
  return {
    customerId: explanation.customerId,
    productId: explanation.productId,
    environment: explanation.environment,
    asOf: iso(explanation.asOf),
    entitlement: entitlementJson(explanation.entitlement),
    summary: explanation.summary,
    sources: explanation.sources.map(explainedSourceJson),
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

function explainedSourceJson({ id, kind, rail, customerId, intervals, events }: ExplainedSource) {
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
