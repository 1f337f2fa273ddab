import type { Environment, NormalizedEvent, QuarantineReason } from './event.js'
import { instant, text } from './fields.js'
import type { JsonObject } from './json.js'

/** How far ahead of its receipt an event may be dated: clocks differ by seconds, time zones by less than a day. */
export const USUAL_AHEAD_MS = 24 * 60 * 60 * 1000

/** The envelope of an event of either generation; `data` is still unparsed. */
export interface Envelope {
  readonly id: string
  /** As sent, whatever its content; empty if it is not text. */
  readonly type: string
  /** Epoch milliseconds. */
  readonly createdAt: number
  readonly apiVersion: string | null
  readonly data: unknown
}

/** The wire name of a type, and the function that reads its events. */
export type TypeReader = readonly [wireType: string, (envelope: Envelope) => NormalizedEvent]

export interface ReceiptContext {
  /** The environment of the endpoint that received the event. */
  readonly environment: Environment
  /** Epoch milliseconds. */
  readonly receivedAt: number
  /** How far ahead of its receipt the event may be dated; left out: a day. */
  readonly aheadAtMostMs?: number | undefined
  /**
   * Whether Latchkey wrote the event itself, after a record of the provider. Such events, and no others, have an id that
   * begins with `rec_`, and may have the two types of reports. Never taken from a body or a header.
   */
  readonly isReport?: boolean
}

/** The envelope, or why the event can't be used. */
export function readEnvelope(
  id: string,
  body: JsonObject,
  context: ReceiptContext,
): Envelope | QuarantineReason {
  const { type, createdAt: camel, created_at: snake, livemode } = body
  const createdAt = instant(typeof camel === 'string' ? camel : snake)
  if (createdAt === null) return 'created_at_invalid'
  if (createdAt > context.receivedAt + (context.aheadAtMostMs ?? USUAL_AHEAD_MS))
    return 'created_at_in_future'
  // Only v3 says which environment it means; other events belong to their endpoint's.
  if (typeof livemode === 'boolean' && livemode !== (context.environment === 'live')) {
    return 'livemode_mismatch'
  }
  return {
    id,
    type: typeof type === 'string' ? type : '',
    createdAt,
    apiVersion: text(body.apiVersion, body.api_version),
    data: body.data,
  }
}
