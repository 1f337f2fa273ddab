import { type Issue, LatchkeyError } from '../errors.js'
import { formatPath, type Path } from './issues.js'

/** A value in JSON text and where it stands: what `JSON.parse` forgets, and messages and edits need. */
export interface JsonNode {
  readonly kind: 'object' | 'array' | 'scalar'
  /** Offsets in the text; `end` is exclusive. */
  readonly start: number
  readonly end: number
  /** Members of an object (twice-given ones too) or elements of an array. */
  readonly members: readonly JsonMember[]
}

export interface JsonMember {
  readonly key: string | number
  /** Where the member begins: at its key in an object. */
  readonly start: number
  readonly value: JsonNode
}

export interface JsonDocument {
  readonly value: unknown
  readonly root: JsonNode
}

interface Token {
  readonly text: string
  readonly start: number
}

/** No config needs more than ten, and recursion has to end before the stack does. */
const DEEPEST = 64

/** A record would skip such a key, or reach what every object has. */
const NO_NAMES: readonly unknown[] = ['__proto__', 'constructor', 'prototype']

// A string, a mark, or a run of anything else; a lone quotation mark is a string that never ends.
const TOKENS = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:"]|[^ \t\r\n{}[\],:"]+/g

/**
 * Reads the JSON text of the config file `path` into its value and its tree. Throws `config_invalid` with the
 * file and the place of the first error, and without quoting the text: `JSON.parse` would quote a secret.
 */
export function parseJsonText(text: string, path: string): JsonDocument {
  const tokens = [...text.matchAll(TOKENS)].map((match): Token => ({ text: match[0], start: match.index }))
  let next = 0
  const peek = () => tokens[next]?.text
  const here = () => placeOf(tokens[next]?.start ?? text.length, text)
  const failure = (expected: string) =>
    new LatchkeyError(
      'config_invalid',
      `the config file ${path} is not valid JSON at ${here()}: expected ${expected}`,
    )
  let depth = 0

  const take = (expected: string, accepts: (token: string) => boolean): Token => {
    const token = tokens[next]
    if (token === undefined || !accepts(token.text)) throw failure(expected)
    next += 1
    return token
  }

  const readValue = (): JsonNode => {
    if (peek() === '{') return readContainer('object', '}')
    if (peek() === '[') return readContainer('array', ']')
    const token = take('a value', isScalar)
    return { kind: 'scalar', start: token.start, end: token.start + token.text.length, members: [] }
  }

  const readContainer = (kind: 'object' | 'array', closing: string): JsonNode => {
    if (depth === DEEPEST) {
      const message = `the config file ${path} is nested more than ${DEEPEST} levels deep at ${here()}`
      throw new LatchkeyError('config_invalid', message)
    }
    depth += 1
    const { start } = take(kind, () => true)
    const members: JsonMember[] = []
    while (peek() !== closing || members.length > 0) {
      members.push(kind === 'object' ? readMember() : readElement(members.length))
      if (peek() !== ',') break
      next += 1
    }
    const end = take(`"," or "${closing}"`, (token) => token === closing)
    depth -= 1
    return { kind, start, end: end.start + 1, members }
  }

  const readMember = (): JsonMember => {
    const key = take('a key in quotation marks', isString)
    take('":"', (token) => token === ':')
    return { key: JSON.parse(key.text) as string, start: key.start, value: readValue() }
  }

  const readElement = (index: number): JsonMember => {
    const value = readValue()
    return { key: index, start: value.start, value }
  }

  const root = readValue()
  if (next < tokens.length) throw failure('nothing more')
  return { value: JSON.parse(text), root }
}

/** Keys given twice in one object, of which `JSON.parse` silently keeps the last. */
export function findDuplicateKeys(node: JsonNode, path: Path = []): Issue[] {
  const seen = new Set<string | number>()
  return node.members.flatMap(({ key, value }) => {
    const here = [...path, key]
    const twice = seen.has(key) ? [{ path: formatPath(here), message: 'is given twice' }] : []
    seen.add(key)
    return [...twice, ...findDuplicateKeys(value, here)]
  })
}

/** Keys that no object may have, wherever they are. */
export function findReservedKeys(node: JsonNode, path: Path = []): Issue[] {
  return node.members.flatMap(({ key, value }) => {
    const here = [...path, key]
    const reserved = NO_NAMES.includes(key)
      ? [{ path: formatPath(here), message: 'is a name that no key may have' }]
      : []
    return [...reserved, ...findReservedKeys(value, here)]
  })
}

function isString(token: string): boolean {
  return token.startsWith('"') && isScalar(token)
}

function isScalar(token: string): boolean {
  try {
    JSON.parse(token)
    return true
  } catch {
    return false
  }
}

function placeOf(offset: number, text: string): string {
  const before = text.slice(0, offset).split('\n')
  const column = (before.at(-1)?.length ?? 0) + 1
  return `line ${before.length}, column ${column}`
}
