/* The fields that many requests have in common. */

import { z } from 'zod'
import { parseInstant } from '../provider/instant.js'

export const DAY_MS = 24 * 60 * 60 * 1000

export const PRICE = z.string().regex(/^[1-9]\d{0,9}$/, 'must be a positive integer as text, in cents')
export const TEXT = z.string().min(1).max(255)
export const WEB_URL = z.url({ protocol: /^https?$/ })
export const EMAIL = z.email().max(255)
export const COUNTRY = z.string().regex(/^[A-Z]{2}$/, 'must be two capital letters')
/** One line of text, without control characters. */
export const NAME = z.string().regex(/^\P{Cc}*$/u, 'must not contain control characters')

export const CRYPTO = z.object({ chainId: z.int().optional(), assetId: z.string().max(20).optional() })

export const orNull = <Schema extends z.ZodType>(schema: Schema) => schema.nullable().default(null)

/** The same fields for an update, which needs none of them and must not bring in defaults. */
export function changesOf(schema: z.ZodObject): z.ZodObject {
  const bare = (field: unknown) => (field instanceof z.ZodDefault ? field.unwrap() : field) as z.ZodType
  const fields = Object.entries(schema.shape).map(([name, field]) => [name, bare(field).optional()] as const)
  return z.object(Object.fromEntries(fields))
}

/** @param read null: the text is not right */
function readBy<Value>(read: (text: string) => Value | null, message: string) {
  return z.string().transform((text, context) => {
    const value = read(text)
    if (value !== null) return value
    context.addIssue({ code: 'custom', message })
    return z.NEVER
  })
}

export const INSTANT = readBy(parseInstant, 'must be an ISO 8601 time')

const UNIT_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: DAY_MS }
export const DURATION_MS = readBy((text) => {
  const [, count, unit = ''] = /^(\d{1,6})([smhd])$/.exec(text) ?? []
  return count === undefined ? null : Number(count) * (UNIT_MS[unit] ?? 0)
}, 'must be a duration such as 90s, 15m, 2h or 30d')

function wholeNumber(least: number, most: number) {
  const read = (text: string): number | null => {
    const number = Number(/^\d{1,9}$/.exec(text)?.[0])
    return number >= least && number <= most ? number : null
  }
  return readBy(read, `must be an integer from ${least} to ${most}`)
}

export const cursorAt = (place: number): string => Buffer.from(`before ${place}`).toString('base64url')
const CURSOR = readBy((text) => {
  const place = /^before (\d{1,15})$/.exec(Buffer.from(text, 'base64url').toString())?.[1]
  return place === undefined ? null : Number(place)
}, 'is not a cursor of this list')

export const CURSOR_QUERY = z.object({ limit: wholeNumber(1, 100).default(20), cursor: CURSOR.optional() })
export const PAGE_QUERY = z.object({
  page: wholeNumber(1, 1_000_000).default(1),
  limit: wholeNumber(1, 25).default(25),
})
