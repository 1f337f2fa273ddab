import type { Kysely } from 'kysely'
import type { Logger } from 'pino'
import type { RemovalBound } from '../store/memberships.js'
import type { Database } from '../store/schema.js'
import type { WriteSync } from '../store/sync-writes.js'
import type { Gate } from './limits.js'
import type { Outages } from './outages.js'
import type { Platform } from './platform.js'
import type { AdapterName, SyncedProduct, SyncTarget } from './target.js'

/** What everything that follows access is given. */
export interface Tools {
  /** Reads. */
  readonly db: Kysely<Database>
  readonly writeSync: WriteSync
  /** Epoch milliseconds. */
  readonly clock: () => number
  /** From 0 up to 1. */
  readonly random: () => number
  readonly log: Logger
}

export interface SyncTools extends Tools {
  /** Asked each time, since a reload may change it. */
  readonly removals: () => RemovalBound
  readonly outages: Outages
}

/** What the parts of sync share: the tools, the gate, and what a reload changes. */
export interface SyncContext extends SyncTools {
  readonly gate: Gate
  products: readonly SyncedProduct[]
  /** Those that are configured. */
  platforms: ReadonlyMap<AdapterName, Platform>
  /** Configured, or with memberships of the time when they were. */
  targets: readonly SyncTarget[]
  /** Whether calls may be begun: not while sync is paused, nor at the end. */
  mayCall(): boolean
}
