import type { KnownCustomer, KnownFact, KnownSource } from '../entitlements/model.js'
import { iso, isoOrNull, sourceJson } from './entitlement-json.js'

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

function factJson(fact: KnownFact | undefined) {
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
