import type { Logger } from 'pino'
import type { Db } from '../store/schema.js'
import type { RemovalBound } from './bound.js'
import type { Gate } from './limits.js'
import type { Outages, Reach } from './outages.js'
import type { Outgoing } from './outgoing.js'
import type { Platform } from './platform.js'
import type { AdapterName, SyncedProduct, SyncTarget } from './target.js'
import type { WriteSync } from './writes.js'

/** The dependencies of sync. */
export interface Tools {
  /** For reads. */
  readonly db: Db
  readonly writeSync: WriteSync
  /** Epoch milliseconds. */
  readonly clock: () => number
  /** From 0 up to 1. */
  readonly random: () => number
  readonly log: Logger
  /** How messages are posted; if omitted, by `fetch`. */
  readonly post?: Post
}

export type Post = (
  address: URL,
  options: RequestInit & { readonly headers: Readonly<Record<string, string>> },
) => Promise<Response>

/** How a bot calls its platform. */
export interface BotDeps {
  readonly botToken: string
  /** Null: the platform's own. */
  readonly apiUrl: string | null
  /** Epoch milliseconds. */
  readonly clock: () => number
  readonly reach?: Reach
  /** Of the calls that one instance alone makes. */
  readonly outgoing: Outgoing
}

export interface SyncTools extends Tools {
  /** Called each time, since a reload may change it. */
  readonly removals: () => RemovalBound
  readonly outages: Outages
}

/** Shared by the parts of sync: its dependencies, the gate, and what a reload changes. */
export interface SyncContext extends SyncTools {
  readonly gate: Gate
  products: readonly SyncedProduct[]
  /** The configured ones. */
  platforms: ReadonlyMap<AdapterName, Platform>
  /** Configured targets, and targets removed from the config that still have memberships. */
  targets: readonly SyncTarget[]
  /** Whether calls may start: not while sync is paused, nor at the end. */
  mayCall(): boolean
}
