import { createHash } from 'node:crypto'
import type { Selectable } from 'kysely'
import { LatchkeyError } from '../errors.js'
import type { NormalizedEvent } from '../provider/event.js'
import type { EventsTable } from './schema.js'

/**
 * The event that a stored text says, as this program wrote it: only damage makes one unreadable.
 * @throws {LatchkeyError} `store_unavailable`: it names the event, and quotes nothing of the text, which may hold
 * personal data
 */
export function eventInForm(text: string, eventId: string): NormalizedEvent {
  const event = eventInFormIfReadable(text)
  if (event !== null) return event
  throw new LatchkeyError(
    'store_unavailable',
    `What the event ${eventId} was read as can’t be read any more: \`latchkey replay\` reads it again from its body; ` +
      'where that is gone, or it was done by hand, put a backup in place with `latchkey restore`.',
  )
}

/** The same; null if it can't be read. */
export function eventInFormIfReadable(text: string): NormalizedEvent | null {
  try {
    const event = JSON.parse(text) as Partial<NormalizedEvent> | null
    // Checking more would cost every reader of a source this much for every event.
    return typeof event?.subject === 'string' ? (event as NormalizedEvent) : null
  } catch {
    return null
  }
}

/**
 * Whether a body that should be stored byte for byte is not, because a disk or a person changed the database. Nobody
 * signed what is there now, so it must not be exported or read again.
 */
export function isAltered({
  body,
  body_sha256: sha256,
  body_removed: removed,
}: Pick<Selectable<EventsTable>, 'body' | 'body_sha256' | 'body_removed'>): boolean {
  return removed === null && (body === null || sha256Of(body) !== sha256)
}

/** As it is stored beside every body, in lower-case hex. */
export function sha256Of(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}

/** Of several, one after the other with commas between, which is faster than each by itself; null where one can't be read. */
export function eventsInForms(text: string, count: number): readonly NormalizedEvent[] | null {
  const events = parsedForm(`[${text}]`)
  return Array.isArray(events) && events.length === count && events.every(isEvent) ? events : null
}
