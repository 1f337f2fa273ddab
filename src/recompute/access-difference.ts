import type { Environment } from '../provider/event.js'
import type { AccessSnapshot } from '../store/changes.js'

/** One entitlement that would change, or has changed. */
export interface AccessDifference {
  readonly environment: Environment
  readonly customerId: string
  readonly productId: string
  readonly before: AccessSnapshot
  readonly after: AccessSnapshot
}

/** How many entitlements differ, and some of them. */
export interface DifferenceSummary {
  readonly gains: number
  readonly losses: number
  /** Active, or not, as before; but for another reason or until another time. */
  readonly otherwise: number
  readonly sample: readonly AccessDifference[]
}

/** Counts differences, and keeps the first of them. */
export function summaryOf(differences: Iterable<AccessDifference>, sampleSize: number): DifferenceSummary {
  let [gains, losses, otherwise] = [0, 0, 0]
  const sample: AccessDifference[] = []
  for (const difference of differences) {
    const { before, after } = difference
    if (before.active === after.active) otherwise += 1
    else if (after.active) gains += 1
    else losses += 1
    if (sample.length < sampleSize) sample.push(difference)
  }
  return { gains, losses, otherwise, sample }
}
