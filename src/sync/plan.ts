import { createHash } from 'node:crypto'
import type { Environment } from '../provider/event.js'
import { accountsIn } from '../provider/facts.js'
import { compareText } from '../provider/order.js'
import { loadCustomers } from '../store/customers.js'
import {
  countStates,
  type Failure,
  findMemberships,
  type Membership,
  type MembershipFilter,
  type MembershipKey,
  membershipKey,
  membershipPages,
  OPEN_STATES,
  type StoredState,
  type TargetRef,
} from '../store/memberships.js'
import { type Db, ENVIRONMENTS } from '../store/schema.js'
import { isSyncPaused, loadSyncSettings } from '../store/sync-state.js'
import { isHeld, type RemovalBound } from './bound.js'
import type { CheckReport } from './checks.js'
import type { CallState } from './limits.js'
import { SHOWN_AS, type ShownState } from './membership.js'
import type { AdapterName, SyncedProduct } from './target.js'

/** How many memberships are read at once. */
const CHUNK = 1_000

/** Which targets a question is about, and what decides which calls to them may be made. */
export interface SyncQuestion {
  readonly targets: readonly TargetRef[]
  /** The configured ones, of every environment. */
  readonly products: readonly SyncedProduct[]
  /** Which removals wait for an operator. */
  readonly bound: RemovalBound
  /** @param name of a platform, or the key of a target */
  readonly stateOf: (name: string) => CallState
  /** Epoch milliseconds. */
  readonly now: number
}

export interface PlannedCall extends MembershipKey {
  readonly customerId: string
  readonly action: 'give' | 'take'
  /** A removal above the bound: it waits for `confirm`. */
  readonly needsConfirmation: boolean
}

export type SyncPlan = Awaited<ReturnType<typeof readPlan>>

/**
 * Every call to make, now or after a failure; without parked ones. `hash` is the argument of `confirm`; null: nothing
 * needs confirmation.
 */
export async function readPlan(db: Db, { targets, bound, now }: SyncQuestion) {
  const calls: PlannedCall[] = []
  for (const target of targets) {
    const held = await isHeld(db, target, bound, now)
    for await (const page of membershipPages(db, target, CHUNK, OPEN_STATES)) {
      for (const { environment, target: key, accountId, customerId, desired, confirmed } of page) {
        const action = desired ? 'give' : 'take'
        const needsConfirmation = held && !desired && !confirmed
        calls.push({ environment, target: key, accountId, customerId, action, needsConfirmation })
      }
    }
  }
  const unconfirmed = calls.filter(({ needsConfirmation }) => needsConfirmation)
  return { paused: await isSyncPaused(db), hash: planHash(unconfirmed), calls }
}

/** Identifies these removals, in any order; null: there are none. */
function planHash(removals: readonly MembershipKey[]): string | null {
  if (removals.length === 0) return null
  const lines = removals.map(membershipKey)
  return createHash('sha256').update(lines.sort(compareText).join('\n')).digest('hex')
}

export type SyncStatus = Awaited<ReturnType<typeof readStatus>>

export async function readStatus(
  db: Db,
  { targets, bound, stateOf, now }: SyncQuestion,
  platforms: readonly AdapterName[],
  checked: CheckReport | null,
) {
  const { pausedAt, sweptAt } = await loadSyncSettings(db)
  const statuses = []
  for (const { environment, target } of targets) {
    const ref = { environment, target }
    const memberships = await countShown(db, ref, await isHeld(db, ref, bound, now))
    statuses.push({ ...ref, ...stateOf(target), memberships })
  }
  return {
    paused: pausedAt !== null,
    platforms: platforms.map((platform) => ({ platform, ...stateOf(platform) })),
    targets: statuses,
    /** Removals above the bound that wait for an operator, over all targets. */
    unconfirmed: statuses.reduce((sum, { memberships }) => sum + memberships.unconfirmed, 0),
    /** When the newest sweep began; null: none yet. */
    sweptAt,
    /** From the newest check; null: none since the start. */
    checked,
  }
}

/** @param held whether removals from the target wait for an operator */
async function countShown(db: Db, target: TargetRef, held: boolean) {
  const counts = { settled: 0, due: 0, retrying: 0, waiting: 0, parked: 0, unconfirmed: 0 }
  for (const { state, unconfirmed, count } of await countStates(db, target)) {
    counts[held && unconfirmed ? 'unconfirmed' : SHOWN_AS[state]] += count
  }
  return counts
}

function statesShownAs(shown: ShownState): readonly StoredState[] {
  if (shown === 'unconfirmed') return OPEN_STATES
  return (Object.keys(SHOWN_AS) as StoredState[]).filter((state) => SHOWN_AS[state] === shown)
}

export interface MembershipQuery extends Pick<MembershipFilter, 'environments' | 'target' | 'after'> {
  readonly customerId?: string
  readonly state?: ShownState
  readonly limit: number
}

/** One account and one target, as shown to users. */
export interface MembershipView extends Omit<Membership, 'state' | 'confirmed' | 'error' | 'reason'> {
  readonly state: ShownState
  /** Why it waits for somebody, and what they must do. */
  readonly parked: Failure | null
  /** The newest failure; null since the last success. */
  readonly lastError: Failure | null
}

/** In order of environment, target and account; `next` is the `after` of the next page. */
export async function readMemberships(
  db: Db,
  { targets, bound, now }: SyncQuestion,
  { state, customerId, limit, ...rest }: MembershipQuery,
): Promise<{ readonly items: readonly MembershipView[]; readonly next: MembershipKey | null }> {
  const held: TargetRef[] = []
  for (const ref of targets) if (await isHeld(db, ref, bound, now)) held.push(ref)
  const isOfHeld = ({ environment, target }: TargetRef) =>
    held.some((one) => one.environment === environment && one.target === target)
  const filter = {
    ...rest,
    ...(customerId !== undefined && {
      about: { customerId, accountIds: await accountIdsOf(db, rest.environments, customerId) },
    }),
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

/** A membership is kept for one customer of an account, and asked for by others who share it. */
async function accountIdsOf(db: Db, environments: readonly Environment[] = ENVIRONMENTS, customerId: string) {
  const found = await Promise.all(environments.map((one) => loadCustomers(db, one, [customerId])))
  return found.flatMap((own) => Object.values(accountsIn(own.get(customerId)?.facts ?? {})))
}

/** @param isHeld whether removals from its target wait for an operator */
export function viewMembership(membership: Membership, isHeld: boolean): MembershipView {
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
