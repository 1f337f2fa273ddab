/*
 * The JSON that several answers share. `z.encode` turns a value of the program into it: instants become text, and what
 * a schema does not name is left out.
 */

import { z } from 'zod'
import type { SourceView } from '../entitlements/model.js'
import type { AccessSnapshot } from '../store/changes.js'

/** A value of the program may be deeply read-only; nothing here changes it. */
export type Told<Value> = Value extends readonly (infer Item)[]
  ? readonly Told<Item>[]
  : Value extends object
    ? { readonly [Name in keyof Value]: Told<Value[Name]> }
    : Value

/** What goes over the wire for a value of the program. */
export function toJson<Schema extends z.ZodType>(
  schema: Schema,
  value: Told<z.output<Schema>>,
): z.input<Schema> {
  return z.encode(schema, value as z.output<Schema>)
}

/** An instant as it goes over the wire. */
export function iso(instant: number): string {
  return new Date(instant).toISOString()
}

export function isoOrNull(instant: number | null): string | null {
  return instant === null ? null : iso(instant)
}

/** ISO 8601 UTC with milliseconds on the wire, epoch milliseconds in the program. */
export const instant = z.codec(z.string().meta({ format: 'date-time' }), z.number(), {
  decode: (text) => Date.parse(text),
  encode: (at) => new Date(at).toISOString(),
})

/** Of each name how many there are. */
export function counts<const Name extends string>(...names: readonly Name[]) {
  return Object.fromEntries(names.map((name) => [name, z.int()])) as Readonly<Record<Name, z.ZodInt>>
}

export const environment = z.enum(['live', 'sandbox'])
export const rail = z.enum(['card', 'crypto', 'unknown'])
const sourceKind = z.enum(['subscription', 'payment', 'manual'])
export const endReason = z.enum([
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
const status = z.enum(['active', 'ending', 'blocked', 'none', ...endReason.options])

export const holdReason = z.enum(['source_unknown', 'customer_unknown', 'product_unknown', 'rail_unknown'])

export const sourceKey = z.object({ kind: sourceKind, id: z.string() })

export const source = z.object({
  id: z.string(),
  kind: sourceKind,
  active: z.boolean(),
  since: instant.nullable(),
  until: instant.nullable(),
  rail,
  pastDue: z.boolean(),
  cancelAtPeriodEnd: z.boolean(),
  periodEnd: instant.nullable(),
  reason: endReason.nullable(),
  eventId: z.string(),
}) satisfies z.ZodType<SourceView>

export const entitlement = z.object({
  productId: z.string(),
  active: z.boolean(),
  status,
  since: instant.nullable(),
  until: instant.nullable(),
  pastDue: z.boolean(),
  sources: z.array(source),
})
export type EntitlementJson = z.input<typeof entitlement>

/** Whom an answer is about, and when it holds. */
const about = {
  customerId: z.string(),
  environment,
  asOf: instant,
  validUntil: instant.nullable(),
  cursor: z.string(),
}

/** Everything that one customer may use. */
export const access = z.object({ ...about, entitlements: z.array(entitlement) })
export type AccessJson = z.input<typeof access>

/** One product of that. */
export const productAccess = z.object({ ...about, ...entitlement.shape })

/** A call to a platform, by which somebody becomes a member of a role or group, or is none any more. */
export const platformCall = z.object({
  environment,
  target: z.string(),
  accountId: z.string(),
  customerId: z.string(),
  action: z.enum(['give', 'take']),
})

/** What an entitlement says at one instant. */
export const snapshot = z.object({
  active: z.boolean(),
  status,
  since: instant.nullable(),
  until: instant.nullable(),
}) satisfies z.ZodType<AccessSnapshot>
