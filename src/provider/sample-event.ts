import { LatchkeyError } from '../errors.js'
import type { Generation } from './event.js'
import { WIRE_TYPES, wireTypeOf } from './event-types.js'
import type { SampleSubject } from './sample-subject.js'
import { sampleDataV2 } from './sample-v2.js'
import { sampleDataV3 } from './sample-v3.js'
import { writeEvent } from './wire-event.js'

export interface SampleSpec extends SampleSubject {
  /** A type name of either generation. */
  readonly type: string
  /** The generation to use; if omitted, the one that the type name belongs to. */
  readonly generation?: Generation
}

export interface SampleEvent {
  /** The exact text to sign and send. */
  readonly body: string
  /** The wire name of the type, for the event header. */
  readonly event: string
}

/**
 * Builds an event as in the provider's documentation, not yet signed.
 *
 * @throws LatchkeyError `usage` for a type that the requested generation does not send
 */
export function buildSampleEvent({ type, generation, ...subject }: SampleSpec): SampleEvent {
  const event = wireTypeOf(type, generation)
  if (event === undefined) throw new LatchkeyError('usage', `There is no event type ${JSON.stringify(type)}.`)
  const { eventId: id, createdAt, environment } = subject
  const data = WIRE_TYPES.v2.includes(event) ? sampleDataV2(event, subject) : sampleDataV3(event, subject)
  return { body: writeEvent({ id, type: event, createdAt, environment, data }), event }
}
