/*
 * The JSON that several answers share. `z.encode` turns a value of the program into it: instants become text, and what
 * a schema does not name is left out.
 */

import { z } from 'zod'

/** ISO 8601 UTC with milliseconds on the wire, epoch milliseconds in the program. */
export const instant = z.codec(z.string().meta({ format: 'date-time' }), z.number(), {
  decode: (text) => Date.parse(text),
  encode: (at) => new Date(at).toISOString(),
})

export const environment = z.enum(['live', 'sandbox'])
export const rail = z.enum(['card', 'crypto', 'unknown'])
const sourceKind = z.enum(['subscription', 'payment', 'manual'])
const endReason = z.enum([
  'failed',
  'refunded',
  'charged_back',
  'voided',
  'expired',
  'canceled',
  'completed',
  'lapsed',
  'moved',
  'revoked',
])
export const status = z.enum(['active', 'ending', 'blocked', 'none', ...endReason.options])

export const sourceKey = z.object({ kind: sourceKind, id: z.string() })
