import type { Kysely } from 'kysely'
import type { AccessAnswer } from '../entitlements/answer.js'
import { type Block, blocksOn, isStanding } from '../entitlements/blocks.js'
import { entitlementsOf, nextChangeAfter } from '../entitlements/entitlement.js'
import type { SourceState } from '../entitlements/model.js'
import type { Environment } from '../provider/event.js'
import { loadBlocks } from './blocks.js'
import { latestCursor } from './changes.js'
import type { Database } from './schema.js'
import { loadSourcesOfCustomers } from './sources.js'

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

/** What an answer is worked out from. */
interface Grounds {
  readonly cursor: string
  readonly sources: readonly SourceState[]
  readonly blocks: readonly Block[]
}

/** Answers what one customer may use, from the sources: exact at every instant, whatever was written down last. */
export function createAccessReader(db: Kysely<Database>, clock: () => number): ReadAccess {
  return async (query) => {
    const { customerId } = query
    const grounds = await loadGrounds(db, query.environment, [customerId])
    return answerFrom(grounds(customerId), query, clock())
  }
}

/** Answers the same of many customers, in a few queries for all of them. */
export function createAccessesReader(db: Kysely<Database>, clock: () => number): ReadAccesses {
  return async ({ customerIds, ...query }) => {
    const grounds = await loadGrounds(db, query.environment, customerIds)
    const now = clock()
    return customerIds.map((customerId) => answerFrom(grounds(customerId), { ...query, customerId }, now))
  }
}

async function loadGrounds(
  db: Kysely<Database>,
  environment: Environment,
  customerIds: readonly string[],
): Promise<(customerId: string) => Grounds> {
  // Read before the sources: a change that commits in between is then told twice, never missed.
  const cursor = String(await latestCursor(db))
  const sources = await loadSourcesOfCustomers(db, environment, customerIds)
  const blocks = await loadBlocks(db, environment, customerIds)
  return (id) => ({ cursor, sources: sources.get(id) ?? [], blocks: blocks.get(id) ?? [] })
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
    blocked: blocksOn(null, blocks, instant).some(isStanding),
    entitlements,
  }
}
