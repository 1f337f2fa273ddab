import { createHash } from 'node:crypto'
import type { Kysely } from 'kysely'
import { compareText } from '../entitlements/order.js'
import { type Membership, type MembershipKey, SHOWN_AS } from '../store/membership.js'
import {
  countStates,
  findMemberships,
  isHeld,
  membershipPages,
  OPEN_STATES,
  type RemovalBound,
  statesShownAs,
  type TargetRef,
} from '../store/memberships.js'
import type { Database } from '../store/schema.js'
import { loadSyncSettings } from '../store/sync-state.js'
import type {
  CallState,
  MembershipPage,
  MembershipQuery,
  MembershipView,
  PlannedCall,
  PlatformStatus,
  SyncPlan,
  SyncStatus,
} from './sync.js'
import type { AdapterName } from './target.js'

/** Names exactly these removals, whatever their order; null: there are none. */
function planHash(removals: readonly MembershipKey[]): string | null {
  if (removals.length === 0) return null
  const lines = removals.map(({ environment, target, accountId }) =>
    JSON.stringify([environment, target, accountId]),
  )
  return createHash('sha256').update(lines.sort(compareText).join('\n')).digest('hex')
}

/** How many memberships are read at once. */
const CHUNK = 1_000

export interface PlanQuestion {
  readonly targets: readonly TargetRef[]
  readonly bound: RemovalBound
  readonly paused: boolean
  /** Epoch milliseconds. */
  readonly now: number
}

/** Every call that is to be made, now or after a failure; what is parked is not among them. */
export async function readPlan(
  db: Kysely<Database>,
  { targets, bound, paused, now }: PlanQuestion,
): Promise<SyncPlan> {
  const calls: PlannedCall[] = []
  for (const target of targets) {
    const held = await isHeld(db, target, bound, now)
    for await (const page of membershipPages(db, target, CHUNK, OPEN_STATES)) {
      for (const { environment, target: key, accountId, customerId, desired, confirmed } of page) {
        calls.push({
          environment,
          target: key,
          accountId,
          customerId,
          action: desired ? 'give' : 'take',
          needsConfirmation: held && !desired && !confirmed,
        })
      }
    }
  }
  return { paused, hash: planHash(calls.filter(({ needsConfirmation }) => needsConfirmation)), calls }
}

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
  const { pausedAt, sweptAt } = await loadSyncSettings(db)
  const statuses = []
  for (const { environment, target } of targets) {
    const ref = { environment, target }
    const counts = await countStates(db, ref, await isHeld(db, ref, bound, now))
    statuses.push({ ...ref, state: stateOf(target), counts })
  }
  const platformStatus = (platform: AdapterName): PlatformStatus => ({ platform, state: stateOf(platform) })
  return {
    paused: pausedAt !== null,
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
  { state, customerId, limit, ...rest }: MembershipQuery,
  { targets, bound, now }: Pick<StatusQuestion, 'targets' | 'bound' | 'now'>,
): Promise<MembershipPage> {
  const held: TargetRef[] = []
  for (const ref of targets) if (await isHeld(db, ref, bound, now)) held.push(ref)
  const isOfHeld = ({ environment, target }: TargetRef) =>
    held.some((one) => one.environment === environment && one.target === target)
  const filter = {
    ...rest,
    ...(customerId !== undefined && { customerIds: [customerId] }),
    ...(state && {
      states: statesShownAs(state),
      unconfirmed: { from: held, is: state === 'unconfirmed' },
    }),
  }
  const found = await findMemberships(db, filter, limit + 1)
  const items = found.slice(0, limit).map((one) => viewMembership(one, isOfHeld(one)))
  const last = items.at(-1)
  if (last === undefined || found.length <= limit) return { items, next: null }
  const { environment, target, accountId } = last
  return { items, next: { environment, target, accountId } }
}

/** @param isHeld whether removals from its target wait for an operator */
function viewMembership(membership: Membership, isHeld: boolean): MembershipView {
  const { confirmed, reason, error, ...shown } = membership
  const shownAs = SHOWN_AS[shown.state]
  const isOpenRemoval = !shown.desired && !confirmed && (shownAs === 'due' || shownAs === 'retrying')
  return {
    ...shown,
    state: isHeld && isOpenRemoval ? 'unconfirmed' : shownAs,
    parked: shownAs === 'waiting' || shownAs === 'parked' ? error : null,
    lastError: error,
  }
}
