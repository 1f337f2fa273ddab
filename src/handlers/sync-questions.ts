import type { IncomingMessage } from 'node:http'
import { LatchkeyError } from '../errors.js'
import type { Environment } from '../provider/event.js'
import type { Outage } from '../sync/outages.js'
import type { OutboundStatus } from '../sync/outbound/outbound.js'
import type { CheckFinding } from '../sync/platform.js'
import type { RunOptions, Sync, SyncRun, SyncStatus } from '../sync/sync.js'
import type { Authenticate } from './authenticate.js'
import { ENVIRONMENT_ONLY, requireBoth, shownEnvironments } from './environment.js'
import { readQuery } from './query.js'

/** What the routes about roles, groups and the outbound webhook ask, and have done. */
export interface SyncQuestions extends Pick<Sync, 'memberships' | 'plan' | 'check' | 'pause' | 'resume'> {
  /** Whether there is any role or group that is configured, or was: what was given in it is to be taken back still. */
  readonly hasTargets: () => Promise<boolean>
  /** @param environments whose targets and messages it shows; left out: of both */
  readonly status: (environments?: readonly Environment[]) => Promise<SyncState>
  /** @throws LatchkeyError `plan_changed` */
  readonly run: (options: RunOptions) => Promise<SyncRunReport>
}

/** How it stands with all that follows access. */
export interface SyncState {
  readonly sync: SyncStatus
  /** Null: no outbound webhook is configured. */
  readonly outbound: OutboundStatus | null
  /** Who is unreachable now. */
  readonly outages: readonly Outage[]
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

/** What is wrong with a name that no role or group has, or had, in these environments; null: nothing. */
export async function targetProblem(
  target: string,
  environments: readonly Environment[],
  { status }: Pick<SyncQuestions, 'status'>,
): Promise<string | null> {
  const { targets } = (await status(environments)).sync
  const names = targets.map((one) => one.target)
  if (names.includes(target)) return null
  return names.length === 0 ? 'is none: there is none here' : `is none of ${names.join(', ')}`
}

/** @throws LatchkeyError `sync_off` */
export async function requireTargets({ hasTargets }: Pick<SyncQuestions, 'hasTargets'>): Promise<void> {
  if (await hasTargets()) return
  throw new LatchkeyError('sync_off', 'No product has a role or group that follows it, in the config.')
}

/**
 * Sees that the request's key has the right; answers the environments that it is about: the one that is named, or all
 * that the key is for.
 * @throws LatchkeyError `unauthorized`, `forbidden`, `invalid_request`
 */
export function authorizeSync(
  req: IncomingMessage,
  { authenticate, environments }: SyncDeps,
): readonly Environment[] {
  const key = authenticate(req, 'admin')
  return shownEnvironments(readQuery(req, ENVIRONMENT_ONLY), environments(), key)
}

/**
 * Sees that the request's key is for both environments, for what can't be done in one of them alone.
 * @throws LatchkeyError `unauthorized`, `forbidden`, `invalid_request`
 */
export function authorizeAllSync(req: IncomingMessage, { authenticate }: SyncDeps): void {
  requireBoth(authenticate(req, 'admin'))
  readQuery(req, [])
}

/** Leaves out what was found about targets of other environments; what was found about a platform concerns all. */
export async function findingsIn(
  environments: readonly Environment[],
  findings: readonly CheckFinding[],
  { status }: Pick<SyncQuestions, 'status'>,
): Promise<readonly CheckFinding[]> {
  const namesOf = ({ sync }: SyncState) => sync.targets.map(({ target }) => target)
  const [own, all] = [namesOf(await status(environments)), namesOf(await status())]
  return findings.filter(({ about }) => own.includes(about) || !all.includes(about))
}
