import type { Environment } from '../provider/event.js'
import { iso, isoOrNull } from './entitlement-json.js'

/** What an entitlement said before or after a change; instants in epoch milliseconds. */
interface Snapshot {
  readonly active: boolean
  readonly status: string
  readonly since: number | null
  readonly until: number | null
}

/** One change of one entitlement, with the cursor of what comes after it. */
export interface ToldChange {
  readonly cursor: string
  /** Epoch milliseconds. */
  readonly at: number
  readonly environment: Environment
  readonly customerId: string
  readonly productId: string
  readonly before: Snapshot
  readonly after: Snapshot
  readonly cause: { readonly kind: string; readonly eventId: string | null }
}

/** A change as it goes over the wire. */
export function changeJson({
  cursor,
  at,
  environment,
  customerId,
  productId,
  before,
  after,
  cause,
}: ToldChange) {
  return {
    cursor,
    at: iso(at),
    environment,
    customerId,
    productId,
    before: snapshotJson(before),
    after: snapshotJson(after),
    cause: { kind: cause.kind, eventId: cause.eventId },
  }
}

function snapshotJson({ active, status, since, until }: Snapshot) {
  return { active, status, since: isoOrNull(since), until: isoOrNull(until) }
}
