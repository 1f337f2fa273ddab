import type { Kysely } from 'kysely'
import { isChange } from '../ingest/settle.js'
import type { Environment } from '../provider/event.js'
import { type AccessSnapshot, loadAllChanges } from '../store/changes.js'
import type { ReplayCounts } from '../store/recompute-job.js'
import type { Database } from '../store/schema.js'

const CHANGES_AT_ONCE = 1_000

export interface RecomputeReport {
  /** Of a replay. */
  readonly counts: ReplayCounts
  readonly access: Readonly<Record<Environment | 'all', DifferenceSummary>>
  /** Of a replay that writes nothing: everybody whose access or accounts would be others. */
  readonly customers: readonly CustomerAhead[]
  /** What is not stored as its events say, where that was looked for; where it is corrected, nothing. */
  readonly differences: {
    readonly count: number
    readonly named: readonly StateDifference[]
    /** Why not all could be compared; null: all was. */
    readonly problem: string | null
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
export interface AccessDifference {
  readonly environment: Environment
  readonly customerId: string
  readonly productId: string
  readonly before: AccessSnapshot
  readonly after: AccessSnapshot
}

/** A customer as they would be. */
export interface CustomerAhead {
  readonly environment: Environment
  readonly customerId: string
  /** Null: as they are stored. */
  readonly activeProducts: readonly string[] | null
  readonly accounts: { readonly communityId: string | null; readonly messengerId: string | null } | null
}

export function summarise(
  differences: readonly AccessDifference[],
  sampleSize: number,
): RecomputeReport['access'] {
  const of = (environment: Environment) =>
    summaryOf(
      differences.filter((one) => one.environment === environment),
      sampleSize,
    )
  return { all: summaryOf(differences, sampleSize), live: of('live'), sandbox: of('sandbox') }
}

function summaryOf(differences: readonly AccessDifference[], sampleSize: number): DifferenceSummary {
  const isGain = ({ before, after }: AccessDifference) => after.active && !before.active
  const isLoss = ({ before, after }: AccessDifference) => before.active && !after.active
  const gains = differences.filter(isGain).length
  const losses = differences.filter(isLoss).length
  const otherwise = differences.length - gains - losses
  return { gains, losses, otherwise, sample: differences.slice(0, sampleSize) }
}

/** What the change log says that recomputing has changed, each entitlement once: before and after. */
export async function changesSince(
  db: Kysely<Database>,
  changesAfter: number,
): Promise<readonly AccessDifference[]> {
  const found = new Map<string, AccessDifference>()
  let after: number | undefined = changesAfter
  while (after !== undefined) {
    const changes = await loadAllChanges(db, after, CHANGES_AT_ONCE)
    for (const { environment, customerId, productId, cause, ...change } of changes) {
      if (cause.kind !== 'rebuild') continue
      const name = JSON.stringify([environment, customerId, productId])
      const before = found.get(name)?.before ?? change.before
      found.set(name, { environment, customerId, productId, before, after: change.after })
    }
    after = changes.at(-1)?.cursor
  }
  return [...found.values()].filter(({ before, after: is }) => isChange(before, is))
}
