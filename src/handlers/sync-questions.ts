import type { IncomingMessage } from 'node:http'
import { LatchkeyError } from '../errors.js'
import type { Environment } from '../provider/event.js'
import type { OutboundStatus } from '../sync/outbound.js'
import type { RunOptions, Sync, SyncRun, SyncStatus } from '../sync/sync.js'
import type { Authenticate } from './authenticate.js'
import { readEnvironment } from './environment.js'
import { queryOf, readParameter } from './query.js'

/** What the routes about roles, groups and the outbound webhook ask, and have done. */
export interface SyncQuestions extends Pick<Sync, 'memberships' | 'plan' | 'check' | 'pause' | 'resume'> {
  /** Whether there is any role or group that is configured, or was: what was given in it is to be taken back still. */
  readonly hasTargets: () => Promise<boolean>
  readonly status: () => Promise<SyncState>
  /** @throws LatchkeyError `plan_changed` */
  readonly run: (options: RunOptions) => Promise<SyncRunReport>
}

/** How it stands with all that follows access. */
export interface SyncState {
  readonly sync: SyncStatus
  /** Null: no outbound webhook is configured. */
  readonly outbound: OutboundStatus | null
}

export interface SyncRunReport extends SyncRun {
  /** Messages of the outbound webhook that `retry` made due. */
  readonly messages: number
}

export interface SyncDeps {
  readonly authenticate: Authenticate
  /** The environments of the configured endpoints; asked each time, since a reload may change them. */
  readonly environments: () => readonly Environment[]
  readonly sync: SyncQuestions
}

export const NOT_STORED = { 'Cache-Control': 'no-store' }

/** @throws LatchkeyError `sync_off` */
export async function requireTargets({ hasTargets }: Pick<SyncQuestions, 'hasTargets'>): Promise<void> {
  if (await hasTargets()) return
  throw new LatchkeyError('sync_off', 'No product has a role or group that follows it, in the config.')
}

/**
 * Which environments an answer shows: the one that is named, or all that the key is for.
 * @throws LatchkeyError `unauthorized`, `forbidden`, `invalid_request`
 */
export function shownEnvironments(req: IncomingMessage, { authenticate, environments }: SyncDeps) {
  const key = authenticate(req, 'admin')
  const query = queryOf(req.url ?? '')
  const named = readParameter(query, 'environment') !== null
  const shown = named ? [readEnvironment(query, environments(), key)] : key.environments
  return { query, isShown: (one: { readonly environment: Environment }) => shown.includes(one.environment) }
}
