import { z } from 'zod'
import { shownId } from './ids.js'
import { parseInstant } from './instant.js'
import { isJsonObject, type JsonObject } from './json.js'
import { isPlainText } from './plain-text.js'

/** Far over any name, address or reference that is documented; longer text counts as not shown. */
export const MAX_TEXT_LENGTH = 1000

/*
 * The kinds of field on the wire. None ever fails: what has the wrong type counts as not shown, so that
 * one odd field does not take away what the rest of an authentic event says.
 */

export const anything = z.unknown().optional()

/** Null where no id is shown; not checked for being usable. */
export const id = z.preprocess(shownId, z.string().nullable())

export const text = z
  .string()
  .refine((value) => value !== '' && isPlainText(value, MAX_TEXT_LENGTH))
  .nullish()
  .catch(null)

export const flag = z.boolean().nullish().catch(null)

/** Null where null is shown, undefined where nothing is. */
export const integer = z.int().nullish().catch(undefined)

/** Epoch milliseconds. */
export const instant = z.preprocess(shownInstant, z.number().nullable())

function shownInstant(value: unknown): number | null {
  return typeof value === 'string' ? parseInstant(value) : null
}

/**
 * An object whose fields are named in camelCase, as in `shape`, or in snake_case. Of a field under both
 * names the camelCase one counts, unless it shows nothing. Anything but an object shows no field at all.
 */
export function eitherCasing<Shape extends Readonly<Record<string, z.ZodType>>>(shape: Shape) {
  const fields = Object.entries(shape).map(([name, schema]) => ({ name, snake: snakeCase(name), schema }))
  return z.preprocess((input) => {
    const shown: Record<string, unknown> = {}
    if (!isJsonObject(input)) return shown
    for (const field of fields) shown[field.name] = shownUnder(field, input)
    return shown
  }, z.object(shape))
}

interface Field {
  readonly name: string
  readonly snake: string
  readonly schema: z.ZodType
}

function shownUnder({ name, snake, schema }: Field, wire: JsonObject): unknown {
  if (snake === name || wire[snake] === undefined) return wire[name]
  if (wire[name] === undefined) return wire[snake]
  return schema.parse(wire[name]) ?? wire[snake]
}

function snakeCase(camelCase: string): string {
  return camelCase.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}
