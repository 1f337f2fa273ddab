import type { Environment } from '../provider/event.js'
import type { NewChange } from '../store/changes.js'
import type { ReplayCounts } from '../store/recompute-job.js'

export interface RecomputeReport {
  /** Of a replay. */
  readonly counts: ReplayCounts
  readonly access: Readonly<Record<Environment | 'all', DifferenceSummary>>
  /** Of a replay that writes nothing: everybody whose access or accounts would change. */
  readonly customers: readonly CustomerAhead[]
  /** Of a verification. */
  readonly differences: {
    readonly count: number
    readonly named: readonly StateDifference[]
  }
}

/** Something that is not stored as the events say. */
export interface StateDifference {
  readonly environment: Environment
  readonly kind: 'source' | 'link' | 'place' | 'disposition' | 'entitlement'
  /** `subscription sub_1`, the payment's id of a `link`, an event's id, or `cus_1 pro_1`. */
  readonly id: string
}

/** How many entitlements differ, and some of them. */
export interface DifferenceSummary {
  readonly gains: number
  readonly losses: number
  /** Active, or not, as before; but for another reason or until another time. */
  readonly otherwise: number
  readonly sample: readonly AccessDifference[]
}

/** One entitlement that would change, or has changed. */
export type AccessDifference = Omit<NewChange, 'at' | 'cause'>

/** A customer as they would be; null: as they are stored. */
export interface CustomerAhead {
  readonly environment: Environment
  readonly customerId: string
  readonly activeProducts: readonly string[] | null
  readonly accounts: { readonly communityId: string | null; readonly messengerId: string | null } | null
}

export function summarise(
  differences: readonly AccessDifference[],
  sampleSize: number,
): RecomputeReport['access'] {
  const summaryOf = (own: readonly AccessDifference[]): DifferenceSummary => {
    const gains = own.filter(({ before, after }) => after.active && !before.active).length
    const losses = own.filter(({ before, after }) => before.active && !after.active).length
    return { gains, losses, otherwise: own.length - gains - losses, sample: own.slice(0, sampleSize) }
  }
  const of = (environment: Environment) =>
    summaryOf(differences.filter((one) => one.environment === environment))
  return { all: summaryOf(differences), live: of('live'), sandbox: of('sandbox') }
}
