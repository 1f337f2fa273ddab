import type { Kysely } from 'kysely'
import { blocksOn, isInForce } from '../entitlements/by-hand.js'
import { entitlementsOf, nextChangeAfter } from '../entitlements/entitlement.js'
import type { AccessAnswer } from '../entitlements/model.js'
import type { Environment } from '../provider/event.js'
import { type Grounds, loadGrounds } from './grounds.js'
import type { Database } from './schema.js'

/** `at`: epoch milliseconds; null asks about now. */
export interface AccessQuery {
  readonly environment: Environment
  readonly customerId: string
  readonly at: number | null
}

export type ReadAccess = (query: AccessQuery) => Promise<AccessAnswer>

export interface AccessesQuery extends Omit<AccessQuery, 'customerId'> {
  readonly customerIds: readonly string[]
}

/** One answer for each customer asked about, in that order, and all of one instant. */
export type ReadAccesses = (query: AccessesQuery) => Promise<readonly AccessAnswer[]>

/** Answers what one customer may use, from the sources: exact at every instant, whatever was written down last. */
export function createAccessReader(db: Kysely<Database>, clock: () => number): ReadAccess {
  const readAccesses = createAccessesReader(db, clock)
  return async ({ customerId, ...query }) => {
    const [answer] = await readAccesses({ ...query, customerIds: [customerId] })
    return answer as AccessAnswer
  }
}

/** Answers the same of many customers, in a few queries for all of them. */
export function createAccessesReader(db: Kysely<Database>, clock: () => number): ReadAccesses {
  return async ({ customerIds, ...query }) => {
    const grounds = await loadGrounds(db, query.environment, customerIds)
    const now = clock()
    return customerIds.map((customerId) =>
      answerFrom(grounds.get(customerId) as Grounds, { ...query, customerId }, now),
    )
  }
}

function answerFrom(
  { cursor, sources, blocks }: Grounds,
  { environment, customerId, at }: AccessQuery,
  now: number,
): AccessAnswer {
  const instant = at === null ? { now } : { at }
  const entitlements = entitlementsOf(sources, blocks, instant)
  return {
    customerId,
    environment,
    asOf: at ?? now,
    validUntil: at === null ? nextChangeAfter(entitlements, now) : null,
    cursor,
    blocked: blocksOn(null, blocks, instant).some(isInForce),
    entitlements,
  }
}
