import { createHash, randomBytes } from 'node:crypto'
import { type Node, parseTree } from 'jsonc-parser'
import { z } from 'zod'
import { LatchkeyError } from '../errors.js'
import { API_SCOPES, type ApiKey } from '../handlers/api-key.js'
import { environmentSchema } from './fields.js'
import { parseJsonText } from './json-text.js'
import type { Problem, Usable } from './problems.js'

/** The hash that a shell computes if the variable for the key is not set. */
const HASH_OF_NOTHING = 'sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'

export const keyNameSchema = z
  .string()
  .regex(/^[^\p{Cc}]*\S[^\p{Cc}]*$/u, 'must be a name without control characters')

const apiKeySchema = z.strictObject({
  name: keyNameSchema,
  hash: z
    .string()
    .regex(/^sha256:[0-9a-fA-F]{64}$/, 'must be sha256:<64 hex digits>')
    .refine(
      (hash) => hash.toLowerCase() !== HASH_OF_NOTHING,
      'is the hash of the empty text, not of a key: make a key with `latchkey keys create`',
    )
    .describe('The SHA-256 of the key.'),
  scopes: z.array(z.enum(API_SCOPES)).min(1),
  environments: z.array(environmentSchema).min(1),
})

/** A key in the config file. */
export type ApiKeyEntry = z.input<typeof apiKeySchema>

export const apiSchema = z.strictObject({
  keys: z
    .array(
      apiKeySchema.transform(
        ({ hash, ...key }): ApiKey => ({ ...key, sha256: hash.slice('sha256:'.length).toLowerCase() }),
      ),
    )
    .prefault([]),
})

/** Names identify keys in every log, and hashes identify the name: both must be unique. */
export function findRepeatedKeys({ keys }: Usable<z.input<typeof apiSchema>>): Problem[] {
  const given = (keys ?? []).map((key) => key && { name: key.name, hash: key.hash.toLowerCase() })
  return given.flatMap((key, index) =>
    (['name', 'hash'] as const).flatMap((field) => {
      const isRepeated = key && given.slice(0, index).some((other) => other?.[field] === key[field])
      return isRepeated
        ? [{ path: ['api', 'keys', index, field], message: `is also the ${field} of another key` }]
        : []
    }),
  )
}

export interface NewApiKey {
  /** Shown once, and not stored. */
  readonly key: string
  readonly entry: ApiKeyEntry
}

/** Makes an API key and its config entry, which holds only the key's hash. */
export function createApiKey({ name, ...rights }: Omit<ApiKeyEntry, 'hash'>): NewApiKey {
  const key = `lk_${randomBytes(32).toString('base64url')}`
  const hash = `sha256:${createHash('sha256').update(key).digest('hex')}`
  return { key, entry: { name, hash, ...rights } }
}

/**
 * Adds a key to the text of the config file `path`, and leaves every other character as it is.
 * Throws `usage` if the name is taken, `config_invalid` if the file has no place for it.
 */
export function addApiKey(text: string, path: string, entry: ApiKeyEntry): string {
  parseJsonText(text, path)
  const root = parseTree(text)
  const api = member(root, 'api')
  const keys = member(api, 'keys')
  if (keys?.children?.some((key) => member(key, 'name')?.value === entry.name)) {
    throw new LatchkeyError('usage', `a key named ${JSON.stringify(entry.name)} exists already`)
  }
  if (keys) return insertLast(text, expectKind(keys, 'array', 'api.keys'), inline(entry))
  if (api) return insertLast(text, expectKind(api, 'object', 'api'), `"keys": [${inline(entry)}]`)
  return insertLast(text, expectKind(root, 'object', ''), `"api": { "keys": [${inline(entry)}] }`)
}

/** The value of the last member of that name, which is the one that `JSON.parse` keeps. */
function member(node: Node | undefined, key: string): Node | undefined {
  const members = node?.type === 'object' ? node.children : []
  return members?.findLast(({ children }) => children?.[0]?.value === key)?.children?.[1]
}

function expectKind(node: Node | undefined, kind: 'array' | 'object', path: string): Node {
  if (node?.type === kind) return node
  const message = `must be ${kind === 'array' ? 'a list' : 'an object'}`
  throw new LatchkeyError('config_invalid', 'the config file has no place for a key', {
    issues: [{ path, message }],
  })
}

/** Separates the new member from the last one by the same white space that separates the others. */
function insertLast(text: string, { offset, length, children }: Node, content: string): string {
  const last = children?.at(-1)
  if (last === undefined) {
    return `${text.slice(0, offset + 1)} ${content} ${text.slice(offset + length - 1)}`
  }
  const [space] = /\s*$/.exec(text.slice(0, last.offset)) ?? ['']
  const end = last.offset + last.length
  return `${text.slice(0, end)},${space}${content}${text.slice(end)}`
}

function inline(entry: ApiKeyEntry): string {
  const list = (items: readonly string[]) => `[${items.map((item) => JSON.stringify(item)).join(', ')}]`
  const { name, hash, scopes, environments } = entry
  return `{ "name": ${JSON.stringify(name)}, "hash": "${hash}", "scopes": ${list(scopes)}, "environments": ${list(environments)} }`
}
