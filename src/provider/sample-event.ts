import { LatchkeyError } from '../errors.js'
import type { Generation } from './event.js'
import {
  CANONICAL_TYPE_OF_V2,
  CUSTOMER_EVENT_TYPES,
  INFORMATIVE_EVENT_TYPES,
  LEGACY_ONLY,
  PAYMENT_EVENT_TYPES,
  SUBSCRIPTION_EVENT_TYPES,
} from './event-types.js'
import type { SampleSubject } from './sample-subject.js'
import { sampleDataV2 } from './sample-v2.js'
import { sampleDataV3 } from './sample-v3.js'

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

/** Every documented type of each generation. */
export const SAMPLE_TYPES: Readonly<Record<Generation, readonly string[]>> = {
  v2: [...Object.keys(CANONICAL_TYPE_OF_V2), 'PAYMENT_SETTLED'],
  v3: [
    ...PAYMENT_EVENT_TYPES,
    ...SUBSCRIPTION_EVENT_TYPES,
    ...CUSTOMER_EVENT_TYPES,
    ...INFORMATIVE_EVENT_TYPES,
  ].filter((type) => !LEGACY_ONLY.some((one) => one === type)),
}

/**
 * Builds an event as in the provider's documentation, not yet signed.
 *
 * @throws LatchkeyError `usage` for a type that the requested generation does not send
 */
export function buildSampleEvent({ type, generation, ...subject }: SampleSpec): SampleEvent {
  const event = findSampleType(type, generation)
  if (event === undefined) throw new LatchkeyError('usage', `There is no event type ${JSON.stringify(type)}.`)
  const envelope = { id: subject.eventId, type: event, createdAt: new Date(subject.createdAt).toISOString() }
  const body = SAMPLE_TYPES.v2.includes(event)
    ? { ...envelope, data: sampleDataV2(event, subject) }
    : {
        ...envelope,
        api_version: '3.0.0-beta',
        livemode: subject.environment === 'live',
        data: sampleDataV3(event, subject),
      }
  return { body: JSON.stringify(body), event }
}

/** The types that the generation sends; all types if it is omitted. */
function sampleTypes(generation: Generation | undefined): readonly string[] {
  return generation ? SAMPLE_TYPES[generation] : [...SAMPLE_TYPES.v3, ...SAMPLE_TYPES.v2]
}

/** The generation's name for a type of either generation; undefined if it does not send the type. */
export function findSampleType(type: string, generation: Generation | undefined): string | undefined {
  const offered = sampleTypes(generation)
  return [type, ...namesOf(type)].find((name) => offered.includes(name))
}

/** The names of the type in both generations, if both have it. */
function namesOf(type: string): string[] {
  return Object.entries(CANONICAL_TYPE_OF_V2)
    .filter((names) => names.includes(type))
    .flat()
}
