import { createHash, randomBytes } from 'node:crypto'
import { applyEdits, modify } from 'jsonc-parser'
import { z } from 'zod'
import { LatchkeyError } from '../errors.js'
import { API_SCOPES, type ApiKey } from '../handlers/api-key.js'
import type { Problem } from '../handlers/problem.js'
import { environmentSchema, instantSchema } from './fields.js'
import { parseJsonText } from './json-text.js'
import type { Usable } from './problems.js'

/** The hash that a shell computes if the variable for the key is not set. */
const HASH_OF_NOTHING = 'sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'

export const keyNameSchema = z
  .string()
  .regex(/^[^\p{Cc}]*\S[^\p{Cc}]*$/u, 'must be a name without control characters')

const hashSchema = z
  .string()
  .regex(/^sha256:[0-9a-fA-F]{64}$/, 'must be sha256:<64 hex digits>')
  .refine(
    (hash) => hash.toLowerCase() !== HASH_OF_NOTHING,
    'is the hash of the empty text, not of a key: make a key with `latchkey keys create`',
  )

/** More than one process answers. */
const MAX_PER_SECOND = 100_000

const apiKeySchema = z.strictObject({
  name: keyNameSchema,
  hash: hashSchema.describe('The SHA-256 of the key.'),
  scopes: z.array(z.enum(API_SCOPES)).min(1),
  environments: z.array(environmentSchema).min(1),
  createdAt: instantSchema.optional().describe('When the key was made.'),
  expiresAt: instantSchema.optional().describe('The key is refused from this time on.'),
  rateLimit: z
    .strictObject({
      perSecond: z.number().min(0.001).max(MAX_PER_SECOND).describe('Requests a second, on average.'),
      burst: z.int().min(1).max(MAX_PER_SECOND).optional().describe('Requests at once.'),
    })
    .optional(),
  previous: z
    .strictObject({ hash: hashSchema, notAfter: instantSchema })
    .optional()
    .describe('The key before the last rotation, and when it expires.'),
})

/** The keys of an entry: its own, and the one before the last rotation. */
function keysOf(entry: z.output<typeof apiKeySchema>): readonly ApiKey[] {
  const { hash, createdAt, expiresAt, rateLimit, previous, ...rights } = entry
  const { perSecond = 0, burst = Math.ceil(perSecond) } = rateLimit ?? {}
  const key = {
    ...rights,
    sha256: sha256Of(hash),
    createdAt: createdAt === undefined ? null : Date.parse(createdAt),
    expiresAt: expiresAt === undefined ? null : Date.parse(expiresAt),
    rateLimit: rateLimit === undefined ? null : { perSecond, burst },
    isReplaced: false,
  }
  if (previous === undefined) return [key]
  const { hash: old, notAfter } = previous
  return [
    key,
    { ...key, sha256: sha256Of(old), createdAt: null, expiresAt: Date.parse(notAfter), isReplaced: true },
  ]
}

function sha256Of(hash: string): string {
  return hash.slice('sha256:'.length).toLowerCase()
}

/** A key in the config file. */
export type ApiKeyEntry = z.input<typeof apiKeySchema>

export const apiSchema = z.strictObject({
  keys: z
    .array(apiKeySchema.transform(keysOf))
    .transform((entries) => entries.flat())
    .prefault([]),
})

/** Names identify keys in every log, and hashes identify the name: both must be unique. */
export function findRepeatedKeys({ keys }: Usable<z.input<typeof apiSchema>>): Problem[] {
  const given = (keys ?? []).flatMap((key, index) => {
    if (!key) return []
    const at = (...path: readonly string[]) => ['api', 'keys', index, ...path]
    return [
      { field: 'name', value: key.name, path: at('name') },
      { field: 'hash', value: key.hash.toLowerCase(), path: at('hash') },
      ...(key.previous
        ? [{ field: 'hash', value: key.previous.hash.toLowerCase(), path: at('previous', 'hash') }]
        : []),
    ]
  })
  return given.flatMap(({ field, value, path }, index) => {
    const isRepeated = given.slice(0, index).some((other) => other.field === field && other.value === value)
    return isRepeated ? [{ path, message: `is also the ${field} of another key` }] : []
  })
}

export interface NewApiKey {
  /** Shown once, and not stored. */
  readonly key: string
  readonly entry: ApiKeyEntry
}

/** Makes an API key and its config entry, which holds only the key's hash. */
export function createApiKey({ name, ...rights }: Omit<ApiKeyEntry, 'hash'>): NewApiKey {
  const { key, hash } = newSecret()
  return { key, entry: { name, hash, ...rights } }
}

function newSecret() {
  const key = `lk_${randomBytes(32).toString('base64url')}`
  return { key, hash: `sha256:${createHash('sha256').update(key).digest('hex')}` }
}

/**
 * Adds a key to the text of the config file `path`.
 * Throws `usage` if the name is taken, `config_invalid` if the file has no place for it.
 */
export function addApiKey(text: string, path: string, entry: ApiKeyEntry): string {
  if (entriesIn(text, path).some(({ name }) => name === entry.name)) {
    throw new LatchkeyError('usage', `a key named ${JSON.stringify(entry.name)} exists already`)
  }
  try {
    return withValue(text, [-1], entry, { isArrayInsertion: true })
  } catch (cause) {
    const issues = [{ path: 'api.keys', message: 'must be a list' }]
    throw new LatchkeyError('config_invalid', 'the config file has no place for a key', { cause, issues })
  }
}

/** Removes a key from the text of the config file `path`. Throws `usage` if there is none of this name. */
export function removeApiKey(text: string, path: string, name: string): string {
  return withValue(text, [placeOf(name, text, path)], undefined)
}

/** How a key is replaced. */
export interface Rotation {
  /** Epoch milliseconds. */
  readonly now: number
  /** How long the old key stays valid, in milliseconds, unless it ends before. */
  readonly graceMs: number
  /** When the new key ends: infinite, if never; undefined, if nobody said. */
  readonly expiresAt: number | undefined
}

/**
 * Replaces a key in the text of the config file `path`, and keeps the old one for a while.
 * @returns the new key, which is not stored, and when the old one ends
 * @throws {LatchkeyError} `usage` if there is none of this name, or if the old one ends and nobody said when the new one
 * does
 */
export function rotateApiKey(
  text: string,
  path: string,
  name: string,
  { now, graceMs, expiresAt }: Rotation,
): { readonly key: string; readonly text: string; readonly oldEndsAt: number } {
  const place = placeOf(name, text, path)
  const old = entriesIn(text, path)[place] ?? {}
  const oldExpiresAt =
    typeof old.expiresAt === 'string' ? Date.parse(old.expiresAt) : Number.POSITIVE_INFINITY
  if (expiresAt === undefined && Number.isFinite(oldExpiresAt)) {
    const message = `the key expires at ${old.expiresAt}: say with --expires when the new one does, or never`
    throw new LatchkeyError('usage', message)
  }
  const oldEndsAt = Math.max(now, Math.min(oldExpiresAt, now + graceMs))
  const { key, hash } = newSecret()
  const fields = {
    hash,
    createdAt: isoTime(now),
    expiresAt: undefined,
    ...endingAt(expiresAt),
    previous: oldEndsAt > now ? { hash: old.hash, notAfter: isoTime(oldEndsAt) } : undefined,
  }
  const changed = Object.entries(fields)
    .filter(([field, value]) => value !== undefined || field in old)
    .reduce((before, [field, value]) => withValue(before, [place, field], value), text)
  return { key, text: changed, oldEndsAt }
}

/** The field of an entry. @param at infinite, if it never ends */
export function endingAt(at: number | undefined): { readonly expiresAt?: string } {
  return at === undefined || !Number.isFinite(at) ? {} : { expiresAt: isoTime(at) }
}

/** To the second. */
export function isoTime(at: number): string {
  return new Date(at).toISOString().replace(/\.\d{3}Z$/, 'Z')
}

/** The entries of a config file that may be wrong elsewhere. */
function entriesIn(text: string, path: string): readonly Readonly<Record<string, unknown>>[] {
  const keys: unknown = Object(Object(parseJsonText(text, path).value).api).keys
  return Array.isArray(keys) ? keys.map(Object) : []
}

function placeOf(name: string, text: string, path: string): number {
  const names = entriesIn(text, path).map((entry) => entry.name)
  const place = names.indexOf(name)
  if (place !== -1) return place
  const known = names.length === 0 ? 'there is none' : `the keys are ${names.join(', ')}`
  throw new LatchkeyError('usage', `no key is named ${JSON.stringify(name)}: ${known}`)
}

/** Changes a value below `api.keys`, and leaves the rest of the text as it is. @param value undefined: removes it */
function withValue(
  text: string,
  path: readonly (string | number)[],
  value: unknown,
  options: { readonly isArrayInsertion?: boolean } = {},
): string {
  const formattingOptions = { insertSpaces: true, tabSize: 2 }
  return applyEdits(text, modify(text, ['api', 'keys', ...path], value, { ...options, formattingOptions }))
}
