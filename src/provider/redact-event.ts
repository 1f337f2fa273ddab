import type { NormalizedEvent } from './event.js'
import type { ErasedPeople } from './known-people.js'
import { isPersonField } from './person-fields.js'
import { isContact } from './redact-body.js'
import { scrubEvent } from './scrub-event.js'

/**
 * The event of another customer, or of nobody that is known, without what it tells of people who are erased. What it
 * tells of its own customer stays, for that is theirs, even where somebody erased was known by it too.
 * @param customerId whose event it is; null: not known
 */
export function redactEvent(
  event: NormalizedEvent,
  customerId: string | null,
  { mentionsIn }: ErasedPeople,
): NormalizedEvent {
  const details = Object.values(event.customer).filter((detail) => detail !== null)
  const references = event.externalRef === null ? [] : [event.externalRef]
  const shown = [...details, ...references]
  if (customerId === null && shown.some((detail) => mentionsIn(detail, true).some(isContact))) {
    return scrubEvent(event)
  }
  const own = new Set(customerId === null ? [] : shown.map((detail) => detail.trim().toLowerCase()))
  const tells = (text: string, isPersonField = false): boolean =>
    mentionsIn(text, isPersonField).some(({ word }) => !own.has(word))
  const metadata = Object.fromEntries(
    Object.entries(event.metadata).filter(
      ([name, value]) => !tells(name) && !tells(value, isPersonField(name)),
    ),
  )
  const redacted = { ...event, metadata }
  if (redacted.subject !== 'manual' || redacted.type === 'manual.erased') return redacted
  return redacted.reason !== null && tells(redacted.reason) ? { ...redacted, reason: null } : redacted
}
