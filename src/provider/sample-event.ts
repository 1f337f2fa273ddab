import { LatchkeyError } from '../errors.js'
import type { Environment, Generation, ProvenRail } from './event.js'
import {
  CANONICAL_TYPE_OF_V2,
  CUSTOMER_EVENT_TYPES,
  INFORMATIVE_EVENT_TYPES,
  PAYMENT_EVENT_TYPES,
  SUBSCRIPTION_EVENT_TYPES,
} from './event-types.js'
import { sampleV2 } from './sample-v2.js'
import { sampleV3 } from './sample-v3.js'

/** What a sample tells; null leaves it out, as the documents allow. */
export interface SampleSpec {
  /** A type of either generation. */
  readonly type: string
  /** Left out, the type's own. */
  readonly generation?: Generation
  readonly eventId: string
  /** Epoch milliseconds. */
  readonly createdAt: number
  readonly environment: Environment
  readonly customerId: string | null
  readonly productId: string | null
  readonly paymentId: string | null
  readonly subscriptionId: string | null
  readonly rail: ProvenRail
}

export interface SampleEvent {
  /** The exact text to sign and send. */
  readonly body: string
  /** The type as the wire has it, for the X-Webhook-Event header. */
  readonly event: string
}

/** These canonical types exist in the legacy generation alone. */
const ONLY_V2: readonly string[] = ['checkout.initiated', 'checkout.failed', 'checkout.canceled']

/** Every documented type of each generation. */
export const SAMPLE_TYPES: Readonly<Record<Generation, readonly string[]>> = {
  v2: [...Object.keys(CANONICAL_TYPE_OF_V2), 'PAYMENT_SETTLED'],
  v3: [
    ...PAYMENT_EVENT_TYPES,
    ...SUBSCRIPTION_EVENT_TYPES,
    ...CUSTOMER_EVENT_TYPES,
    ...INFORMATIVE_EVENT_TYPES,
  ].filter((type) => !ONLY_V2.includes(type)),
}

/**
 * Builds an event as the provider's documents show it, to try an installation with.
 * @throws {LatchkeyError} `usage`: no such type, or none of that name in the generation asked for
 */
export function buildSampleEvent(spec: SampleSpec): SampleEvent {
  const named: Generation = SAMPLE_TYPES.v2.includes(spec.type) ? 'v2' : 'v3'
  const generation = spec.generation ?? (ONLY_V2.includes(spec.type) ? 'v2' : named)
  const event = typeIn(generation, spec.type)
  const data = generation === 'v2' ? sampleV2(event, spec) : sampleV3(event, spec)
  const envelope = { id: spec.eventId, type: event, createdAt: new Date(spec.createdAt).toISOString() }
  const told = generation === 'v2' ? {} : { api_version: '3.0.0-beta', livemode: spec.environment === 'live' }
  return { body: JSON.stringify({ ...envelope, ...told, data }), event }
}

/** The name that the type has in that generation. */
function typeIn(generation: Generation, type: string): string {
  const types = SAMPLE_TYPES[generation]
  const other = Object.entries(CANONICAL_TYPE_OF_V2).find(
    ([v2, canonical]) => v2 === type || canonical === type,
  )
  const candidates = [type, ...(other ?? [])]
  const found = candidates.find((candidate) => types.includes(candidate))
  if (found !== undefined) return found
  throw new LatchkeyError(
    'usage',
    `There is no ${generation} event type ${type}. There are: ${types.join(', ')}.`,
  )
}
