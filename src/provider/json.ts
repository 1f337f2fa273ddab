export type JsonObject = Readonly<Record<string, unknown>>

export type JsonBody =
  | { readonly ok: true; readonly object: JsonObject }
  | {
      readonly ok: false
      readonly reason: 'not_utf8' | 'not_json' | 'not_an_object' | 'nested_too_deep' | 'duplicate_keys'
    }

/**
 * Maximum nesting of objects and arrays. Documented events nest five deep. JSON.parse takes any depth, but recursion
 * over its result (JSON.stringify included) overflows the stack.
 */
export const MAX_NESTING = 100

const QUOTE = 0x22
const COLON = 0x3a
const BACKSLASH = 0x5c
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d

/** Keeps a byte order mark, which is not valid JSON. */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Parses a body that every parser reads the same way: one JSON object in strict UTF-8, without duplicate keys. */
export function parseJsonBody(body: Uint8Array): JsonBody {
  let text: string
  try {
    text = utf8.decode(body)
  } catch {
    return { ok: false, reason: 'not_utf8' }
  }
  // Before parsing, JSON or not: a megabyte of brackets takes the parser longer than anything else.
  const members = countWritten(body)
  if (members === null) return { ok: false, reason: 'nested_too_deep' }
  let value: unknown
  try {
    value = parse(text)
  } catch {
    return { ok: false, reason: 'not_json' }
  }
  if (!isJsonObject(value)) return { ok: false, reason: 'not_an_object' }
  // JSON.parse keeps one member of each name, so duplicates show as fewer members than were written.
  if (countMembers(value) < members) return { ok: false, reason: 'duplicate_keys' }
  return { ok: true, object: value }
}

/**
 * JSON.parse, with a workaround: in Node 24 and 26 (not 20 and 22) it sometimes confuses a key written with an escape
 * with another key of the same object. Such keys are parsed separately and put back in place.
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
 * Counts the members in the text, by the colons outside strings; null: nested too deep. In UTF-8 no other character
 * contains any of these bytes, and bytes are read four times as fast as text.
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

/** The end of the string that begins at `start`: its closing quote, or the end of the body. */
function endOfString(body: Uint8Array, start: number): number {
  let index = start + 1
  while (index < body.length && body[index] !== QUOTE) index += body[index] === BACKSLASH ? 2 : 1
  return index
}

/** How many members `value` and the objects within it have. Recurses no deeper than `MAX_NESTING`. */
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
