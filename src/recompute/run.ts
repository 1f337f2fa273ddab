/* What can be asked of a recompute, and what it reports. */

import type { Policy } from '../entitlements/policy.js'
import { LatchkeyError } from '../errors.js'
import type { Accounts } from '../provider/accounts.js'
import type { Environment } from '../provider/event.js'
import type { NewChange } from '../store/changes.js'
import type { JobScope, ReplayCounts } from '../store/recompute.js'
import type { PersonKey } from '../store/schema.js'

/** What is computed again, and under which policy. */
interface Plan<Mode> extends JobScope {
  readonly mode: Mode
  /** Null: the policy in force. `apply` puts another one in force as it begins. */
  readonly policy: Policy | null
  /** The number of examples; all differences are counted. */
  readonly sampleSize?: number
}

/** `compare` reports whose access would change, `verify` lists all differences. Nothing is written. */
export type ComparePlan = Plan<'compare' | 'verify'>
/** Writes what differs. */
export type ApplyPlan = Plan<'apply'>
export type RecomputePlan = ComparePlan | ApplyPlan

/** In events; only the ratio counts. */
export type OnProgress = (reached: number, total: number) => void

/** How work in many transactions reports its progress, and is stopped between two of them. */
export interface WorkOptions {
  readonly onProgress?: OnProgress
  /**
   * Finished steps stay, and the next work of the same kind continues from there. It also gives other work its turn. The
   * work itself can't, by a turn of the event loop: in a busy thread such a turn comes after hundreds of messages.
   */
  readonly isStopping?: () => boolean | Promise<boolean>
}

export interface RecomputeReport {
  /** For a replay. */
  readonly counts: ReplayCounts
  readonly access: Readonly<Record<Environment | 'all', DifferenceSummary>>
  /** For a dry run of a replay: all customers whose access or accounts would change. */
  readonly customers: readonly ProjectedCustomer[]
  /** For a verification. */
  readonly differences: {
    readonly count: number
    readonly named: readonly StateDifference[]
  }
}

/** Stored data that differs from what the events say. */
export interface StateDifference {
  readonly environment: Environment
  readonly kind: 'source' | 'link' | 'place' | 'disposition' | 'entitlement'
  /** `subscription sub_1`, the payment's id of a `link`, an event's id, or `cus_1 pro_1`. */
  readonly id: string
}

/** How many entitlements differ, with examples. */
export interface DifferenceSummary {
  readonly gains: number
  readonly losses: number
  /** As active or inactive as before, but with another reason or end. */
  readonly otherwise: number
  readonly sample: readonly AccessDifference[]
}

/** One entitlement that would change, or has changed. */
export type AccessDifference = Omit<NewChange, 'at' | 'cause'>

/** A customer after the changes; null: as stored. */
export interface ProjectedCustomer extends PersonKey {
  readonly activeProducts: readonly string[] | null
  readonly accounts: Accounts | null
}

export const SAMPLE_SIZE = 10

export function summarise(differences: readonly AccessDifference[], sampleSize = SAMPLE_SIZE) {
  const summaryOf = (own: readonly AccessDifference[]): DifferenceSummary => {
    const gains = own.filter(({ before, after }) => after.active && !before.active).length
    const losses = own.filter(({ before, after }) => before.active && !after.active).length
    return { gains, losses, otherwise: own.length - gains - losses, sample: own.slice(0, sampleSize) }
  }
  const of = (environment: Environment) =>
    summaryOf(differences.filter((one) => one.environment === environment))
  return { all: summaryOf(differences), live: of('live'), sandbox: of('sandbox') }
}

export function interrupted({ endpoints }: JobScope): LatchkeyError {
  const code = endpoints === null ? 'rebuild_interrupted' : 'replay_interrupted'
  return new LatchkeyError(code, 'Stopped: run it again to continue.')
}
