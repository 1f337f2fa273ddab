import type { Environment } from './event.js'

/** A signing secret: the HMAC key is its literal text as UTF-8, `whsec_` included. */
export interface SigningSecret {
  readonly secret: string
  /** The secret expires at this instant, in epoch milliseconds; null: never. */
  readonly notAfter: number | null
}

/** The endpoint stored for changes by hand, which come through none. */
export const MANUAL_ENDPOINT = 'manual'
/** The endpoint stored for what Latchkey reports after records of the provider. */
export const BACKFILL_ENDPOINT = 'backfill'

/** A longer tolerance would leave captured deliveries usable for more than a day. */
export const MAX_TOLERANCE_SECONDS = 86_400

/** A configured webhook destination. Everything it receives belongs to its environment. */
export interface Endpoint {
  readonly name: string
  readonly environment: Environment
  readonly secrets: readonly SigningSecret[]
  /** How far a delivery's timestamp may be from now, in either direction. */
  readonly toleranceSeconds: number
  /** How far ahead of its receipt an event may be dated: over a day only in the sandbox, whose clock can be moved. */
  readonly aheadAtMostMs: number
  /** The id of its record at the payments service (`whep_…`), if that is known. */
  readonly serviceId?: string | undefined
}
