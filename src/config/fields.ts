import { z } from 'zod'
import { DURATION_PATTERN, parseDuration } from './duration.js'

export const environmentSchema = z.enum(['live', 'sandbox'])

/** A duration as text, which becomes milliseconds. */
export function durationSchema(message: string) {
  return z.string().regex(DURATION_PATTERN, message).transform(parseDuration)
}

/** A key that may be left out, and what it becomes then. (`default` would show in the JSON Schema.) */
export function withFallback<Schema extends z.ZodType, Fallback>(schema: Schema, fallback: Fallback) {
  return schema.optional().transform((value) => value ?? fallback)
}

/** What a schema makes of the file is only read. */
export type DeepReadonly<T> = T extends object ? { readonly [Key in keyof T]: DeepReadonly<T[Key]> } : T
