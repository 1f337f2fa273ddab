import type { Environment } from '../provider/event.js'

export const API_SCOPES = ['read', 'write', 'events', 'metrics', 'admin'] as const
export type ApiScope = (typeof API_SCOPES)[number]

/** A caller of the API. Only the hash of the key is known here. */
export interface ApiKey {
  readonly name: string
  /** Lower-case hex SHA-256 of the key's text. */
  readonly sha256: string
  readonly scopes: readonly ApiScope[]
  readonly environments: readonly Environment[]
}
