import { createHash, randomBytes } from 'node:crypto'
import { z } from 'zod'
import { LatchkeyError } from '../errors.js'
import { API_SCOPES, type ApiKey } from '../handlers/api-key.js'
import type { Problem } from '../handlers/problem.js'
import { environmentSchema, instantSchema } from './fields.js'
import { shown, type Usable } from './problems.js'

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
    'is the hash of the empty text, not of a key: create a key with `latchkey keys create`',
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

/** Makes an API key, which is shown once and not stored, and its config entry, which holds only the key's hash. */
export function createApiKey({ name, ...rights }: Omit<ApiKeyEntry, 'hash'>) {
  const { key, hash } = newSecret()
  const entry: ApiKeyEntry = { name, hash, ...rights }
  return { key, entry }
}

function newSecret() {
  const key = `lk_${randomBytes(32).toString('base64url')}`
  return { key, hash: `sha256:${createHash('sha256').update(key).digest('hex')}` }
}

/**
 * The content of a config file with one more key.
 * @throws {LatchkeyError} `usage` if the name is taken, `config_invalid` if there is no place for it
 */
export function addApiKey(config: unknown, entry: ApiKeyEntry): unknown {
  const { entries, withKeys } = keysIn(config)
  if (namesIn(entries).includes(entry.name))
    throw new LatchkeyError('usage', `a key named ${JSON.stringify(entry.name)} already exists`)
  return withKeys([...entries, entry])
}

/** The content of a config file without this key. Throws `usage` if there is none of this name. */
export function removeApiKey(config: unknown, name: string): unknown {
  const { entries, withKeys } = keysIn(config)
  return withKeys(entries.toSpliced(placeOf(name, entries), 1))
}

/** How a key is replaced. */
export interface Rotation {
  /** Epoch milliseconds. */
  readonly now: number
  /** How long the old key stays valid, in milliseconds, unless it ends before. */
  readonly graceMs: number
  /** When the new key ends: infinite: never; undefined: when the old one would have. */
  readonly expiresAt: number | undefined
}

/**
 * Replaces a key in the content of a config file, and keeps the old one for a while.
 * @returns the new key, which is not stored, when it ends, null being never, and when the old one does
 * @throws {LatchkeyError} `usage` if there is none of this name, or if it has expired and nobody said when the new one
 * does
 */
export function rotateApiKey(config: unknown, name: string, { now, graceMs, expiresAt }: Rotation) {
  const { key, hash } = newSecret()
  const { entries, withKeys } = keysIn(config)
  const place = placeOf(name, entries)
  const { expiresAt: oldEnd, previous: _, ...old }: Section = Object(entries[place])
  const oldExpiresAt = typeof oldEnd === 'string' ? Date.parse(oldEnd) : Number.NaN
  if (expiresAt === undefined && oldExpiresAt <= now) {
    const message = `the key expired at ${oldEnd}: pass --expires for the new key (a duration, a date or never)`
    throw new LatchkeyError('usage', message)
  }
  const graceEndsAt = now + graceMs
  const oldEndsAt = oldExpiresAt < graceEndsAt ? Math.max(now, oldExpiresAt) : graceEndsAt
  const keptEnd = oldEnd === undefined ? {} : { expiresAt: oldEnd }
  const end = expiresAt === undefined ? keptEnd : endingAt(expiresAt)
  const ends = typeof end.expiresAt === 'string' ? end.expiresAt : null
  const previous = oldEndsAt > now && { previous: { hash: old.hash, notAfter: isoTime(oldEndsAt) } }
  const entry = { ...old, hash, createdAt: isoTime(now), ...end, ...previous }
  return { key, config: withKeys(entries.with(place, entry)), oldEndsAt, ends }
}

/** The field of an entry. @param at infinite, if it never ends */
export function endingAt(at: number | undefined): { readonly expiresAt?: string } {
  return at === undefined || !Number.isFinite(at) ? {} : { expiresAt: isoTime(at) }
}

/** To the second. */
export function isoTime(at: number): string {
  return new Date(at).toISOString().replace(/\.\d{3}Z$/, 'Z')
}

type Section = Readonly<Record<string, unknown>>

/** The keys in the content of a config file that may be wrong elsewhere; and that content with other keys. */
function keysIn(config: unknown) {
  const file = sectionOf(config)
  const api = sectionOf(file.api === undefined ? {} : file.api)
  const { keys: entries = [] } = api
  if (!Array.isArray(entries)) throw noPlace()
  const withKeys = (keys: readonly unknown[]): Section => ({ ...file, api: { ...api, keys } })
  return { entries: entries as readonly unknown[], withKeys }
}

function sectionOf(value: unknown): Section {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw noPlace()
  return { ...value }
}

function noPlace(): LatchkeyError {
  const issues = [{ path: 'api.keys', message: 'must be a list' }]
  return new LatchkeyError('config_invalid', 'the config file has no place for a key', { issues })
}

function namesIn(entries: readonly unknown[]): readonly unknown[] {
  return entries.map((entry) => Object(entry).name)
}

function placeOf(name: string, entries: readonly unknown[]): number {
  const names = namesIn(entries)
  const place = names.indexOf(name)
  if (place !== -1) return place
  // A key may be where its name belongs, here or in the file.
  const [asked, ...others] = [name, ...names].map((one) => shown(String(one), /./))
  const known = others.length === 0 ? 'there is none' : `the keys are ${others.join(', ')}`
  throw new LatchkeyError('usage', `no key is named ${JSON.stringify(asked)}: ${known}`)
}
