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
  // Before it is parsed, JSON or not: a megabyte of brackets takes the parser longer than anything else.
  const members = countWritten(body)
  if (members === null) return { ok: false, reason: 'nested_too_deep' }
  let value: unknown
  try {
    value = parse(text)
  } catch {
    return { ok: false, reason: 'not_json' }
  }
  if (!isJsonObject(value)) return { ok: false, reason: 'not_an_object' }
  // JSON.parse keeps one member of each name, so it yields fewer than were written where any came twice.
  if (countMembers(value) < members) return { ok: false, reason: 'duplicate_keys' }
  return { ok: true, object: value }
}

/**
 * As JSON.parse, which in Node 24 and 26 now and then takes one name that is written with an escape for another of the
 * same object (not in 20 and 22): such names are parsed by themselves, and put back in their places.
 */
function parse(text: string): unknown {
  const value: unknown = JSON.parse(text)
  if (!text.includes('\\')) return value
  let mark = 'name '
  while (text.includes(mark)) mark += '.'
  const names = new Map<string, string>()
  let plain = ''
  let copied = 0
  for (let start = text.indexOf('"'); start !== -1; ) {
    let end = start + 1
    while (text[end] !== '"') end += text[end] === '\\' ? 2 : 1
    const written = text.slice(start, end + 1)
    if (written.includes('\\') && isFollowedByColon(text, end + 1)) {
      const stand = `${mark}${names.size}`
      names.set(stand, JSON.parse(written) as string)
      plain += `${text.slice(copied, start)}"${stand}"`
      copied = end + 1
    }
    start = text.indexOf('"', end + 1)
  }
  return names.size === 0 ? value : renamed(JSON.parse(plain + text.slice(copied)), names)
}

function isFollowedByColon(text: string, index: number): boolean {
  let next = index
  while (' \t\n\r'.includes(text[next] ?? ':')) next += 1
  return text[next] === ':'
}

function renamed(value: unknown, names: ReadonlyMap<string, string>): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((element) => renamed(element, names))
  const members = Object.entries(value)
  return Object.fromEntries(members.map(([name, one]) => [names.get(name) ?? name, renamed(one, names)]))
}

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * How many members are written, for outside strings a colon follows each key; null: nested too deep. In UTF-8 no other
 * character has any of these bytes in it, and bytes are read four times as fast as text.
 */
function countWritten(body: Uint8Array): number | null {
  let depth = 0
  let members = 0
  for (let index = 0; index < body.length; index += 1) {
    const byte = body[index]
    if (byte === QUOTE) index = endOfString(body, index)
    else if (byte === COLON) members += 1
    else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) depth += 1
    else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) depth -= 1
    if (depth > MAX_NESTING) return null
  }
  return members
}

/** Where the string that begins at `start` ends: at its quote, or with the body. */
function endOfString(body: Uint8Array, start: number): number {
  let index = start + 1
  while (index < body.length && body[index] !== QUOTE) index += body[index] === BACKSLASH ? 2 : 1
  return index
}

/** How many members `value` and the objects within it have. It calls itself no deeper than `MAX_NESTING`. */
function countMembers(value: object): number {
  let members = 0
  if (Array.isArray(value)) {
    for (const element of value) members += membersWithin(element)
    return members
  }
  // Twice as fast as a list of the values.
  for (const name in value) members += 1 + membersWithin((value as JsonObject)[name])
  return members
}

function membersWithin(value: unknown): number {
  return typeof value === 'object' && value !== null ? countMembers(value) : 0
}
