/*
 * JSON schemas that several answers share. `z.encode` turns the program's values into JSON: instants become text, and
 * fields that a schema does not name are dropped.
 */

import { z } from 'zod'
import type { BriefAccess, FeatureAccess } from '../entitlements/features.js'
import type { AccessSnapshot, Entitlement, SourceView } from '../entitlements/model.js'

/** The same value, of which nothing may be changed. */
export type DeepReadonly<T> = T extends object ? { readonly [Key in keyof T]: DeepReadonly<T[Key]> } : T

/** The JSON of a value; encoding changes nothing in it. */
export function toJson<Schema extends z.ZodType>(
  schema: Schema,
  value: DeepReadonly<z.output<Schema>>,
): z.input<Schema> {
  return z.encode(schema, value as z.output<Schema>)
}

/** An instant in JSON. */
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

/** One count per name. */
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
export const status = z.enum(['active', 'ending', 'blocked', 'none', ...endReason.options])

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

/** An entitlement at one instant. */
export const snapshot = z.object({
  active: z.boolean(),
  status,
  since: instant.nullable(),
  until: instant.nullable(),
}) satisfies z.ZodType<AccessSnapshot>

export const entitlement = z.object({
  productId: z.string(),
  ...snapshot.shape,
  pastDue: z.boolean(),
  sources: z.array(source),
}) satisfies z.ZodType<Entitlement>
export type EntitlementJson = z.input<typeof entitlement>

/** The answer to a yes-or-no question about a product or a feature. */
export const briefAccess = snapshot.pick({ active: true, until: true }) satisfies z.ZodType<BriefAccess>
/** Of a product never granted. */
export const NO_ACCESS: BriefAccess = { active: false, until: null }

export const feature = z.object({
  id: z.string(),
  ...briefAccess.shape,
  productIds: z.array(z.string()),
}) satisfies z.ZodType<FeatureAccess>
export type FeatureJson = z.input<typeof feature>

/** Warns of a product or feature that neither the config nor any customer's access names: perhaps a typo. */
export const unknown = { unknown: z.literal(true).exactOptional() }

/** Beside an answer. */
export function markUnknown(isKnown: boolean) {
  return isKnown ? {} : { unknown: true as const }
}

/** The customer, and the instant that the answer is about. */
const about = {
  customerId: z.string(),
  environment,
  asOf: instant,
  validUntil: instant.nullable(),
  cursor: z.string(),
}

/** Everything that one customer may use. */
export const access = z.object({
  ...about,
  entitlements: z.array(entitlement),
  features: z.array(feature),
})
export type AccessJson = z.input<typeof access>

/** One product of it. */
export const productAccess = z.object({ ...about, ...entitlement.shape, ...unknown })
export type ProductAccessJson = z.input<typeof productAccess>

/** One feature of it. */
export const featureAccess = z.object({ ...about, ...feature.shape, ...unknown })
export type FeatureAccessJson = z.input<typeof featureAccess>

/** A call to a platform that adds an account to a role or group, or removes it. */
export const platformCall = z.object({
  environment,
  target: z.string(),
  accountId: z.string(),
  customerId: z.string(),
  action: z.enum(['give', 'take']),
})

/** Who made a change by hand, and why. */
export const byHand = { actor: z.string().exactOptional(), reason: z.string().nullable().exactOptional() }
