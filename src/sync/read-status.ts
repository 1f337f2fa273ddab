import type { Kysely } from 'kysely'
import { countStates, loadMembershipPage, type TargetRef } from '../store/memberships.js'
import type { Database } from '../store/schema.js'
import { loadSyncSettings } from '../store/sync-state.js'
import { viewMembership } from './membership-view.js'
import { isHeld, type RemovalBound } from './removal-bound.js'
import type { CallState, MembershipPage, MembershipQuery, PlatformStatus, SyncStatus } from './sync.js'
import type { AdapterName } from './target.js'

export interface StatusQuestion {
  readonly targets: readonly TargetRef[]
  readonly platforms: readonly AdapterName[]
  /** By the name of the platform, or the key of the target. */
  readonly stateOf: (name: string) => CallState
  readonly checked: SyncStatus['checked']
  readonly bound: RemovalBound
  /** Epoch milliseconds. */
  readonly now: number
}

export async function readStatus(
  db: Kysely<Database>,
  { targets, platforms, stateOf, checked, bound, now }: StatusQuestion,
): Promise<SyncStatus> {
  const { paused, sweptAt } = await loadSyncSettings(db)
  const statuses = []
  for (const { environment, target } of targets) {
    const ref = { environment, target }
    const counts = await countStates(db, ref, await isHeld(db, ref, bound, now))
    statuses.push({ ...ref, state: stateOf(target), counts })
  }
  const platformStatus = (platform: AdapterName): PlatformStatus => ({ platform, state: stateOf(platform) })
  return {
    paused,
    platforms: platforms.map(platformStatus),
    targets: statuses,
    unconfirmed: statuses.reduce((sum, { counts }) => sum + counts.unconfirmed, 0),
    sweptAt,
    checked,
  }
}

/** @param bound decides which removals wait for an operator */
export async function readMemberships(
  db: Kysely<Database>,
  query: MembershipQuery,
  { targets, bound, now }: Pick<StatusQuestion, 'targets' | 'bound' | 'now'>,
): Promise<MembershipPage> {
  const held: TargetRef[] = []
  for (const ref of targets) if (await isHeld(db, ref, bound, now)) held.push(ref)
  const isOfHeld = ({ environment, target }: TargetRef) =>
    held.some((one) => one.environment === environment && one.target === target)
  const found = await loadMembershipPage(db, { ...query, limit: query.limit + 1 }, held)
  const items = found.slice(0, query.limit).map((one) => viewMembership(one, isOfHeld(one)))
  const last = items.at(-1)
  if (last === undefined || found.length <= query.limit) return { items, next: null }
  const { environment, target, accountId } = last
  return { items, next: { environment, target, accountId } }
}
