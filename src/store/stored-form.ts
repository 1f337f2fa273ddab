import { LatchkeyError } from '../errors.js'
import type { NormalizedEvent } from '../provider/event.js'

/**
 * What an event was read as, from the text that is stored of it. As this program writes it, only damage makes one
 * unreadable.
 * @throws {LatchkeyError} `store_unavailable`: it names the event, and quotes nothing of the text, which may tell of a
 * person
 */
export function eventInForm(text: string, eventId: string): NormalizedEvent {
  const event = parsedForm(text)
  if (isEvent(event)) return event
  throw new LatchkeyError(
    'store_unavailable',
    `What the event ${eventId} was read as can’t be read any more: \`latchkey replay\` reads it again from its body; ` +
      'where that is gone, or it was done by hand, put a backup in place with `latchkey restore`.',
  )
}

/** The same, and null where it can't be read. */
export function eventInFormIfReadable(text: string): NormalizedEvent | null {
  const event = parsedForm(text)
  return isEvent(event) ? event : null
}

/** Of several, one after the other with commas between, which is faster than each by itself; null where one can't be read. */
export function eventsInForms(text: string, count: number): readonly NormalizedEvent[] | null {
  const events = parsedForm(`[${text}]`)
  return Array.isArray(events) && events.length === count && events.every(isEvent) ? events : null
}

function parsedForm(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** As much as tells an event from anything else: more would cost what each reader of a source pays for every event. */
function isEvent(value: unknown): value is NormalizedEvent {
  return typeof (value as Partial<NormalizedEvent> | null)?.subject === 'string'
}
