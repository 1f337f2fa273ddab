import type { Kysely, Transaction } from 'kysely'
import type { Environment } from '../provider/event.js'
import { loadDue } from '../store/entitlements.js'
import type { Database } from '../store/schema.js'
import { saveAccess } from './save-access.js'

/** Bounds how long one transaction keeps arriving deliveries waiting. */
const MAX_PER_TRANSACTION = 500

export interface RefreshDueDeps {
  readonly db: Kysely<Database>
  readonly clock: () => number
}

/**
 * Writes down what the clock alone has changed since: access that ran out, without any event.
 * Queries need none of this, since they ask the clock themselves; the change log does.
 * @returns how many entitlements were due
 */
export function createRefreshDue({ db, clock }: RefreshDueDeps): () => Promise<number> {
  return async () => {
    let total = 0
    let found: number
    do {
      found = await refreshSome(db, clock())
      total += found
    } while (found === MAX_PER_TRANSACTION)
    return total
  }
}

function refreshSome(db: Kysely<Database>, now: number): Promise<number> {
  return db.transaction().execute((trx) => refreshDueIn(trx, now))
}

/** All that is due, within a transaction of the caller's. */
export async function refreshAllDue(trx: Transaction<Database>, now: number): Promise<void> {
  let found: number
  do {
    found = await refreshDueIn(trx, now)
  } while (found > 0)
}

async function refreshDueIn(trx: Transaction<Database>, now: number): Promise<number> {
  const due = await loadDue(trx, now, MAX_PER_TRANSACTION)
  const byEnvironment = new Map<Environment, Set<string>>()
  for (const { environment, customerId } of due) {
    byEnvironment.set(environment, (byEnvironment.get(environment) ?? new Set()).add(customerId))
  }
  for (const [environment, customerIds] of byEnvironment) {
    await saveAccess(trx, environment, [...customerIds], now, () => ({ kind: 'clock', eventId: null }))
  }
  return due.length
}
