import type { Environment } from '../provider/event.js'
import type { Failure, Membership, MembershipKey, ShownState } from '../store/membership.js'
import type { MembershipFilter, RetryFilter } from '../store/memberships.js'
import type { CheckFinding, Platform } from './platform.js'
import type { AdapterName, SyncedProduct, Target } from './target.js'

export type { Failure, MembershipKey, RetryFilter }

/**
 * Keeps roles and groups in step with access: takes in what has changed, and drives the platforms until they agree.
 * Nothing that is asked here waits for a platform, unless it says so.
 */
export interface Sync {
  /** Something may have changed: looks soon, and not more often than it must. Cheap, and never throws. */
  wake(): void
  /** @param environments whose targets it tells; left out: of both */
  status(environments?: readonly Environment[]): Promise<SyncStatus>
  /** In the order of environment, target and account. */
  memberships(query: MembershipQuery): Promise<MembershipPage>
  /** The calls that would be made now in these environments; left out: in both. Makes none. */
  plan(environments?: readonly Environment[]): Promise<SyncPlan>
  /**
   * Takes in what has changed, tries stopped platforms again, and works off all that is due now; resolves when that
   * is done. While sync is paused it makes no call.
   * @throws {LatchkeyError} `plan_changed`: `confirm` is not the hash of what waits now
   */
  run(options?: RunOptions): Promise<SyncRun>
  /** Compares with the platforms' real members, and makes what differs due. The schedule calls it. */
  sweep(): Promise<void>
  /**
   * Asks the platforms whether all that the configured targets need is there. That is done by itself, too, at the start
   * and with every sweep, run and reload, and some minutes after a check that was not fine.
   */
  check(): Promise<readonly CheckFinding[]>
  /** No call is begun from then on, after a restart either, until `resume`, but for a `check` that is asked for. */
  pause(): Promise<void>
  resume(): Promise<void>
  /**
   * Whether an account that asks to become a member may. `approve` is written down as given before this resolves, so
   * that it is taken back when access ends.
   */
  accountAsked(target: Target, accountId: string): Promise<'approve' | 'decline'>
  /** Takes over another configuration; what follows from it is worked out in the background. */
  reload(products: readonly SyncedProduct[], platforms: readonly Platform[]): void
  /** Begins no call any more, and waits a few seconds for those under way. */
  stop(): Promise<void>
}

/**
 * `settled`: it is as it should be. `due`: to be done now. `retrying`: it failed, and is tried again by itself.
 * `waiting`: for the customer, such as to join. `parked`: for somebody to mend it. `unconfirmed`: a removal beyond the
 * bound, which waits for an operator.
 */
export const MEMBERSHIP_STATES = ['settled', 'due', 'retrying', 'waiting', 'parked', 'unconfirmed'] as const
export type MembershipState = ShownState

export interface MembershipQuery extends Pick<MembershipFilter, 'environments' | 'target' | 'after'> {
  readonly customerId?: string
  readonly state?: MembershipState
  readonly limit: number
}

export interface MembershipPage {
  readonly items: readonly MembershipView[]
  /** What `after` takes for the next page; null: there is none. */
  readonly next: MembershipKey | null
}

/** One account and one target, as users see it. */
export interface MembershipView extends Omit<Membership, 'state' | 'confirmed' | 'error' | 'reason'> {
  readonly state: MembershipState
  /** Why it waits for somebody, and who must do what. */
  readonly parked: Failure | null
  /** The newest failure; null since it last succeeded. */
  readonly lastError: Failure | null
}

/** How it stands with a platform, or one target of it. */
export type CallState =
  | { readonly kind: 'ok' }
  /** No call before `until`, in epoch milliseconds. */
  | ({ readonly kind: 'limited'; readonly until: number } & Failure)
  /** No call until somebody has done what `message` says, and `run` or `resume` tries again. */
  | ({ readonly kind: 'stopped' } & Failure)

export interface PlatformStatus {
  readonly platform: AdapterName
  readonly state: CallState
}

export interface TargetStatus {
  readonly environment: Environment
  /** `targetKey` */
  readonly target: string
  readonly state: CallState
  readonly counts: Readonly<Record<MembershipState, number>>
}

/** What a check found that somebody has to see to. */
export interface CheckReport {
  /** Epoch milliseconds. */
  readonly at: number
  readonly problems: readonly CheckFinding[]
}

export interface SyncStatus {
  readonly paused: boolean
  readonly platforms: readonly PlatformStatus[]
  readonly targets: readonly TargetStatus[]
  /** Removals beyond the bound: how many wait for an operator, over all targets. */
  readonly unconfirmed: number
  /** When the newest sweep began, in epoch milliseconds; null: none yet. */
  readonly sweptAt: number | null
  /** Of the newest check; null: there was none since the start. */
  readonly checked: CheckReport | null
}

export interface PlannedCall extends MembershipKey {
  readonly customerId: string
  readonly action: 'give' | 'take'
  /** A removal beyond the bound: it waits for `confirm`. */
  readonly needsConfirmation: boolean
}

export interface SyncPlan {
  readonly paused: boolean
  /** What `confirm` takes; null: nothing needs confirmation. */
  readonly hash: string | null
  readonly calls: readonly PlannedCall[]
}

export interface RunOptions {
  /** Whose removals may be confirmed, and whose failures are tried again unless `retry` says so; left out: of both. */
  readonly environments?: readonly Environment[]
  /** The hash of a plan of these, or of one of them: its removals are made, bound or not. */
  readonly confirm?: string
  /** Makes what waits, is parked or retrying due now; an empty filter means all of it. */
  readonly retry?: RetryFilter
  /** Compares with the platforms' real members first. */
  readonly sweep?: boolean
}

/** What came of a run. */
export interface SyncRun {
  readonly paused: boolean
  readonly given: number
  readonly taken: number
  /** Found to be as it should be, without a change. */
  readonly unchanged: number
  /** Failed, and tried again by itself. */
  readonly failed: number
  /** For the customer, since this run. */
  readonly waiting: number
  /** Parked in this run. */
  readonly parked: number
  /** Removals that wait for an operator. */
  readonly unconfirmed: number
  /** Calls that are not made until somebody has acted, and then runs it again. */
  readonly stopped: number
  /** Calls that are still to be made, once a platform lets us or answers again; none while sync is paused. */
  readonly left: number
}
