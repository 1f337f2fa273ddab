import { createHash, randomBytes } from 'node:crypto'
import { applyEdits, modify } from 'jsonc-parser'
import { z } from 'zod'
import { LatchkeyError } from '../errors.js'
import { API_SCOPES, type ApiKey } from '../handlers/api-key.js'
import type { Problem } from '../handlers/issues.js'
import { environmentSchema } from './fields.js'
import { parseJsonText } from './json-text.js'
import type { Usable } from './problems.js'

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
 * Adds a key to the text of the config file `path`.
 * Throws `usage` if the name is taken, `config_invalid` if the file has no place for it.
 */
export function addApiKey(text: string, path: string, entry: ApiKeyEntry): string {
  const keys: unknown = Object(Object(parseJsonText(text, path).value).api).keys
  if (Array.isArray(keys) && keys.some((key) => Object(key).name === entry.name)) {
    throw new LatchkeyError('usage', `a key named ${JSON.stringify(entry.name)} exists already`)
  }
  try {
    const formattingOptions = { insertSpaces: true, tabSize: 2 }
    const options = { isArrayInsertion: true, formattingOptions }
    return applyEdits(text, modify(text, ['api', 'keys', -1], entry, options))
  } catch (cause) {
    const issues = [{ path: 'api.keys', message: 'must be a list' }]
    throw new LatchkeyError('config_invalid', 'the config file has no place for a key', { cause, issues })
  }
}
