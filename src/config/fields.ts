import { z } from 'zod'
import { DURATION_PATTERN, parseDuration } from './duration.js'

export const environmentSchema = z.enum(['live', 'sandbox'])

/** An instant as text. */
export const instantSchema = z.iso.datetime({
  offset: true,
  error: 'must be an ISO 8601 time, such as 2027-01-31T00:00:00Z',
})

/** A duration as text, parsed into milliseconds. */
export function durationSchema(message: string) {
  return z.string().regex(DURATION_PATTERN, message).transform(parseDuration)
}

/** An optional key and its fallback. (`default` would show in the JSON Schema.) */
export function withFallback<Schema extends z.ZodType, Fallback>(schema: Schema, fallback: Fallback) {
  return schema.optional().transform((value) => value ?? fallback)
}
