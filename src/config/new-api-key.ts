import { createHash } from 'node:crypto'
import type { ApiKeyFile } from './access-schema.js'

/** Returns that many random bytes. */
export type RandomBytes = (size: number) => Buffer

export interface NewApiKey {
  /** Shown once and kept nowhere. */
  readonly key: string
  readonly entry: ApiKeyFile
}

const KEY_BYTES = 32

/** Makes an API key and the config entry that admits it, which holds only the key's hash. */
export function createApiKey(grant: Omit<ApiKeyFile, 'hash'>, random: RandomBytes): NewApiKey {
  const key = `lk_${random(KEY_BYTES).toString('base64url')}`
  const hash = `sha256:${createHash('sha256').update(key).digest('hex')}`
  return { key, entry: { name: grant.name, hash, scopes: grant.scopes, environments: grant.environments } }
}
