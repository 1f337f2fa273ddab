import { isPlainText, shownId } from './ids.js'
import { parseInstant } from './instant.js'
import { isJsonObject, type JsonObject } from './json.js'

/** Far longer than any documented name, address or reference; longer text counts as missing. */
const MAX_TEXT_LENGTH = 1000

/*
 * Readers of fields. The wire names a field in camelCase or in snake_case: a reader takes both values, and prefers the
 * camelCase one unless it is empty. Readers never fail: a value of the wrong type counts as missing, so that one odd
 * field does not spoil the rest of an authentic event.
 *
 * Both names are written out at each use. About fifty fields are read of every event, and a loop over a list of names
 * takes longer than parsing the JSON.
 */

/** The fields of an object; any other value has none. */
export function fieldsOf(value: unknown): JsonObject {
  return isJsonObject(value) ? value : NO_FIELDS
}

export const NO_FIELDS: JsonObject = {}

/** Null if there is no id; does not check that the id is usable. */
export function id(camel: unknown, snake?: unknown): string | null {
  return shownId(camel) ?? shownId(snake)
}

/** Null if there is no text that can be stored. */
export function text(camel: unknown, snake?: unknown): string | null {
  if (isText(camel)) return camel
  return isText(snake) ? snake : null
}

export function flag(camel: unknown, snake?: unknown): boolean | null {
  if (typeof camel === 'boolean') return camel
  return typeof snake === 'boolean' ? snake : null
}

/** Null if the value is null, undefined if there is none. */
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

/** Far more than merchants attach. Each one is indexed, so thousands of them would block everything else. */
const MAX_KEYS = 64

/**
 * The merchant's own metadata: text and numbers, as text, the first 64 of them. Values that can't be kept exactly are
 * left out, such as integers above 2^53: JSON.parse has rounded them to another id.
 */
export function readMetadata(value: unknown): Readonly<Record<string, string>> {
  // No prototype: `__proto__` is an ordinary key in merchants' data.
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
