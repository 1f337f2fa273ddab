import { isPlainText, shownId } from './ids.js'
import { parseInstant } from './instant.js'
import { isJsonObject, type JsonObject } from './json.js'

/** Far over any name, address or reference that is documented; longer text counts as not shown. */
export const MAX_TEXT_LENGTH = 1000

/*
 * The kinds of field on the wire. None ever fails: what has the wrong type counts as not shown, so that
 * one odd field does not take away what the rest of an authentic event says.
 *
 * They are functions of our own: every event of the daemon is read by some fifty of them, and schemas of a
 * library, which gather what is wrong, took a third of the time of reading an event.
 */

/** Reads one field as the wire shows it. */
export type Field<Shown> = (value: unknown) => Shown

/** What an object of these fields shows. */
export type ShownOf<Shape extends Fields> = { readonly [Name in keyof Shape]: ReturnType<Shape[Name]> }

type Fields = Readonly<Record<string, Field<unknown>>>

export const anything: Field<unknown> = (value) => value

/** Null where no id is shown; not checked for being usable. */
export const id: Field<string | null> = shownId

/** Null where null is shown, or what is no text that could be kept; undefined where nothing is. */
export const text: Field<string | null | undefined> = (value) => {
  if (value === undefined) return undefined
  return typeof value === 'string' && value !== '' && isPlainText(value, MAX_TEXT_LENGTH) ? value : null
}

export const flag: Field<boolean | null | undefined> = (value) =>
  value === undefined || typeof value === 'boolean' ? value : null

/** Null where null is shown, undefined where nothing is. */
export const integer: Field<number | null | undefined> = (value) => {
  if (value === null) return null
  return Number.isSafeInteger(value) ? (value as number) : undefined
}

/** Epoch milliseconds. */
export const instant: Field<number | null> = (value) =>
  typeof value === 'string' ? parseInstant(value) : null

/**
 * An object whose fields are named in camelCase, as in `shape`, or in snake_case. Of a field under both
 * names the camelCase one counts, unless it shows nothing. Anything but an object shows no field at all.
 */
export function eitherCasing<Shape extends Fields>(shape: Shape): Field<ShownOf<Shape>> {
  const fields = Object.entries(shape).map(([name, read]) => ({ name, snake: snakeCase(name), read }))
  return (input) => {
    const wire = isJsonObject(input) ? input : NO_FIELDS
    const shown: Record<string, unknown> = {}
    for (const field of fields) shown[field.name] = readEither(field, wire)
    return shown as ShownOf<Shape>
  }
}

const NO_FIELDS: JsonObject = {}

interface NamedField {
  readonly name: string
  readonly snake: string
  readonly read: Field<unknown>
}

function readEither({ name, snake, read }: NamedField, wire: JsonObject): unknown {
  const inCamelCase = wire[name]
  if (snake === name || wire[snake] === undefined) return read(inCamelCase)
  if (inCamelCase === undefined) return read(wire[snake])
  return read(inCamelCase) ?? read(wire[snake])
}

function snakeCase(camelCase: string): string {
  return camelCase.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

/** Far more than merchants attach; each is looked up by, so that thousands of them would hold up all else. */
const MAX_KEYS = 64

/**
 * The merchant's own metadata: text and numbers, as text, the first 64 of them. What can't be kept faithfully is left out,
 * which takes in integers beyond 2^53: JSON.parse has rounded them to somebody else's id.
 */
export function readMetadata(value: unknown): Readonly<Record<string, string>> {
  // No prototype: to merchants' data, `__proto__` is a name like any other.
  const metadata: Record<string, string> = Object.create(null)
  if (!isJsonObject(value)) return metadata
  let kept = 0
  for (const [key, entry] of Object.entries(value)) {
    if (kept === MAX_KEYS) break
    const text = isExactNumber(entry) ? String(entry) : entry
    if (typeof text === 'string' && isPlainText(key, MAX_TEXT_LENGTH) && isPlainText(text, MAX_TEXT_LENGTH)) {
      metadata[key] = text
      kept += 1
    }
  }
  return metadata
}

function isExactNumber(value: unknown): boolean {
  return Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value))
}
