import { isPlainText, shownId } from './ids.js'
import { parseInstant } from './instant.js'
import { isJsonObject, type JsonObject } from './json.js'

/** Far over any name, address or reference that is documented; longer text counts as not shown. */
const MAX_TEXT_LENGTH = 1000

/*
 * Readers of fields. The wire names a field in camelCase or in snake_case: a reader takes the values under both names,
 * and the camelCase one counts unless it shows nothing. None ever fails: a value of the wrong type counts as not shown,
 * so that one odd field does not take away what the rest of an authentic event says.
 *
 * Both names are written out wherever a field is read. Every event has some fifty fields read, and a loop over a list of
 * names takes longer than parsing the JSON.
 */

/** The fields of an object; anything else has none. */
export function fieldsOf(value: unknown): JsonObject {
  return isJsonObject(value) ? value : NO_FIELDS
}

export const NO_FIELDS: JsonObject = {}

/** Null where no id is shown; not checked for being usable. */
export function id(camel: unknown, snake?: unknown): string | null {
  return shownId(camel) ?? shownId(snake)
}

/** Null where no text is shown that could be kept. */
export function text(camel: unknown, snake?: unknown): string | null {
  if (isText(camel)) return camel
  return isText(snake) ? snake : null
}

export function flag(camel: unknown, snake?: unknown): boolean | null {
  if (typeof camel === 'boolean') return camel
  return typeof snake === 'boolean' ? snake : null
}

/** Null where null is shown, undefined where nothing is. */
export function integer(camel: unknown, snake?: unknown): number | null | undefined {
  const shown = integerOf(camel)
  return snake === undefined ? shown : (shown ?? integerOf(snake))
}

/** Epoch milliseconds. */
export function instant(camel: unknown, snake?: unknown): number | null {
  return instantOf(camel) ?? instantOf(snake)
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && isPlainText(value, MAX_TEXT_LENGTH)
}

function integerOf(value: unknown): number | null | undefined {
  if (value === null) return null
  return Number.isSafeInteger(value) ? (value as number) : undefined
}

function instantOf(value: unknown): number | null {
  return typeof value === 'string' ? parseInstant(value) : null
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
