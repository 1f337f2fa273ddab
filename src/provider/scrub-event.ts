import type { CustomerDetails, NormalizedEvent } from './event.js'

const NOTHING_KNOWN: CustomerDetails = {
  email: null,
  name: null,
  communityId: null,
  communityUsername: null,
  messengerId: null,
  messengerUsername: null,
}

/**
 * The same event without anything that tells who the customer is. The payments service's own ids stay, since
 * access follows from them: whatever the event did it goes on doing.
 */
export function scrubEvent(event: NormalizedEvent): NormalizedEvent {
  const scrubbed = { ...event, customer: NOTHING_KNOWN, externalRef: null, metadata: {} }
  // Why somebody was erased is the operator's own record; any other reason may be about the person.
  return scrubbed.subject === 'manual' && scrubbed.type !== 'manual.erased'
    ? { ...scrubbed, reason: null }
    : scrubbed
}
