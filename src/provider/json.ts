import type { QuarantineReason } from './event.js'

export type JsonObject = Readonly<Record<string, unknown>>

export type JsonBody =
  | { readonly ok: true; readonly object: JsonObject }
  | {
      readonly ok: false
      readonly reason: Extract<
        QuarantineReason,
        'not_utf8' | 'not_json' | 'not_an_object' | 'nested_too_deep' | 'duplicate_keys'
      >
    }

/**
 * Objects and arrays within one another. Documented events nest five deep; JSON.parse takes any depth,
 * but whatever recurses over its result (JSON.stringify first of all) overflows the stack.
 */
export const MAX_NESTING = 100

const QUOTE = 0x22
const COLON = 0x3a
const BACKSLASH = 0x5c
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d

/** Keeps a byte order mark, which is not JSON. */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Reads a body that means the same to every reader: one JSON object in strict UTF-8, no key of it twice. */
export function parseJsonBody(body: Uint8Array): JsonBody {
  let text: string
  try {
    text = utf8.decode(body)
  } catch {
    return { ok: false, reason: 'not_utf8' }
  }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return { ok: false, reason: 'not_json' }
  }
  if (!isJsonObject(value)) return { ok: false, reason: 'not_an_object' }

  const { nesting, members } = measure(text)
  if (nesting > MAX_NESTING) return { ok: false, reason: 'nested_too_deep' }
  // JSON.parse keeps one member of each name, so it yields fewer than were written where any came twice.
  if (countMembers(value) < members) return { ok: false, reason: 'duplicate_keys' }
  return { ok: true, object: value }
}

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** How deep valid JSON nests and how many members its objects have: outside strings, a colon follows each key. */
function measure(text: string): { nesting: number; members: number } {
  let nesting = 0
  let depth = 0
  let members = 0
  let inString = false
  for (let index = 0; index < text.length; index += 1) {
    const char = text.charCodeAt(index)
    if (char === QUOTE) inString = !inString
    else if (inString) index += char === BACKSLASH ? 1 : 0
    else if (char === COLON) members += 1
    else if (char === OPEN_BRACE || char === OPEN_BRACKET) nesting = Math.max(nesting, ++depth)
    else if (char === CLOSE_BRACE || char === CLOSE_BRACKET) depth -= 1
  }
  return { nesting, members }
}

/** The members of all objects within `value`, their keys decoded; it nests no deeper than allowed. */
function countMembers(value: unknown): number {
  if (Array.isArray(value)) return value.reduce((members, element) => members + countMembers(element), 0)
  if (!isJsonObject(value)) return 0
  const keys = Object.keys(value)
  return keys.reduce((members, key) => members + countMembers(value[key]), keys.length)
}
