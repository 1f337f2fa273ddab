import type { Policy } from '../entitlements/policy.js'
import type { ApiKey } from '../handlers/api-key.js'
import type { Endpoint } from '../provider/endpoint.js'
import type { Environment } from '../provider/event.js'
import type { Target } from '../sync/target.js'

export const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

/** An address to listen on. Port 0 lets the system choose one. */
export interface Listener {
  readonly host: string
  readonly port: number
}

export interface ServerConfig extends Listener {
  /** How many proxies stand in front of the daemon: that many entries of X-Forwarded-For are believed. */
  readonly trustProxy: number
  /** Listeners that serve nothing else; null: the main one serves it. */
  readonly webhooks: Listener | null
  readonly metrics: Listener | null
}

export interface DatabaseConfig {
  readonly url: string
  /** The SQLite file, absolute. */
  readonly file: string
}

/** Backups made by the clock. */
export interface BackupConfig {
  /** Absolute. */
  readonly folder: string
  readonly everyMs: number
  readonly keep: number
}

/** How long what is stored is kept as it came. */
export interface RetentionConfig {
  readonly bodiesAfterMs: number
}

/** When people are erased without being asked for by hand. */
export interface ErasureConfig {
  readonly onCustomerDeleted: boolean
}

/** The merchant's own reference to a customer: `externalRef`, or `metadata.<key>`. */
export interface IdentityConfig {
  readonly ref: string
}

export interface ProductConfig {
  readonly id: string
  readonly name: string | null
  readonly targets: readonly Target[]
}

/** A platform's bot. `apiUrl` replaces the platform's public address; null: the public one. */
export interface BotConfig {
  readonly botToken: string
  readonly apiUrl: string | null
}

export interface TelegramConfig extends BotConfig {
  /** Where updates are delivered, and the secret that proves them; null: they are fetched by long polling. */
  readonly updates: { readonly url: string; readonly secret: string } | null
}

/** The merchant's own address for changes of access. The secrets are `whsec_` and base64; each of them signs. */
export interface OutboundConfig {
  readonly url: string
  readonly secrets: readonly string[]
  readonly environments: readonly Environment[]
}

/** More removals from a target than both, within an hour, wait for an operator. */
export interface RemovalBound {
  readonly atMost: number
  /** Of the target's members. */
  readonly percent: number
}

export interface SyncConfig {
  readonly discord: BotConfig | null
  readonly telegram: TelegramConfig | null
  readonly webhook: OutboundConfig | null
  readonly sweepEveryMs: number
  readonly removals: RemovalBound
}

/** The payments service's own API. */
export interface ProviderConfig {
  readonly baseUrl: string
  readonly apiKey: string
}

/** The whole configuration, references resolved and defaults filled in. It holds secrets: never logged. */
export interface Config {
  /** The file it came from, absolute. */
  readonly path: string
  readonly server: ServerConfig
  readonly database: DatabaseConfig
  /** Null: none are made by the clock. */
  readonly backup: BackupConfig | null
  /** Null: for ever. */
  readonly retention: RetentionConfig | null
  readonly erasure: ErasureConfig
  readonly endpoints: readonly Endpoint[]
  readonly apiKeys: readonly ApiKey[]
  readonly policy: Policy
  readonly identity: IdentityConfig
  readonly products: readonly ProductConfig[]
  readonly sync: SyncConfig
  /** Null: the service is never asked anything. */
  readonly provider: ProviderConfig | null
  readonly log: { readonly level: LogLevel }
}
