import type { Environment, Generation, QuarantineReason } from './event.js'
import { anything, eitherCasing, type Field, flag, text } from './fields.js'
import { isPlainText, isUsableId, MAX_ID_LENGTH } from './ids.js'
import { parseInstant } from './instant.js'
import type { JsonObject } from './json.js'

/** How far ahead of receipt an event may be dated: clocks differ by seconds, time zones by less than a day. */
export const MAX_AHEAD_MS = 24 * 60 * 60 * 1000

const V3_TYPE = /^[a-z][a-z0-9_]*(\.[a-z0-9_]+)+$/
const V2_TYPE = /^[A-Z][A-Z0-9_]*$/

const wireString: Field<string | null> = (value) => (typeof value === 'string' ? value : null)
const wireEnvelope = eitherCasing({
  type: wireString,
  createdAt: wireString,
  apiVersion: text,
  livemode: flag,
  data: anything,
})
type WireEnvelope = ReturnType<typeof wireEnvelope>

/** What both generations wrap their events in; `data` is still as the wire shows it. */
export interface Envelope {
  readonly id: string
  /** As on the wire; `unknown` where that is no text that could be kept. */
  readonly type: string
  readonly generation: Generation | null
  /** Epoch milliseconds. */
  readonly createdAt: number
  readonly apiVersion: string | null
  readonly data: unknown
}

export interface ReceiptContext {
  /** The environment of the endpoint that received the event. */
  readonly environment: Environment
  /** Epoch milliseconds. */
  readonly receivedAt: number
}

export type EnvelopeReading =
  | { readonly ok: true; readonly envelope: Envelope }
  | { readonly ok: false; readonly reason: QuarantineReason }

/** The event's own id, by which it is stored once; null where the body shows none that could be kept. */
export function readEventId({ id }: JsonObject): string | null {
  return typeof id === 'string' && isUsableId(id) ? id : null
}

export function readEnvelope(id: string, body: JsonObject, context: ReceiptContext): EnvelopeReading {
  const wire = wireEnvelope(body)
  const createdAt = parseInstant(wire.createdAt ?? '')
  if (createdAt === null) return { ok: false, reason: 'created_at_invalid' }
  if (createdAt > context.receivedAt + MAX_AHEAD_MS) return { ok: false, reason: 'created_at_in_future' }
  if (contradicts(wire, context.environment)) return { ok: false, reason: 'livemode_mismatch' }

  const type = wire.type && isPlainText(wire.type, MAX_ID_LENGTH) ? wire.type : 'unknown'
  return {
    ok: true,
    envelope: {
      id,
      type,
      generation: generationOf(type),
      createdAt,
      apiVersion: wire.apiVersion ?? null,
      data: wire.data,
    },
  }
}

/** Only v3 says which environment it means; what does not say goes by its endpoint. */
function contradicts({ livemode }: WireEnvelope, environment: Environment): boolean {
  return typeof livemode === 'boolean' && livemode !== (environment === 'live')
}

function generationOf(type: string): Generation | null {
  if (V3_TYPE.test(type)) return 'v3'
  return V2_TYPE.test(type) ? 'v2' : null
}
