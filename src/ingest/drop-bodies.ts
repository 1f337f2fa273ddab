import type { Kysely, Transaction } from 'kysely'
import {
  expireBodies,
  expireConflicts,
  expiredTo,
  loadAgingBodies,
  passOverBodies,
  saveExpiredTo,
  takeSettledBodies,
} from '../store/expire-bodies.js'
import type { Database } from '../store/schema.js'

/** Looked at in one transaction: bounds how long arriving deliveries wait for it. */
const EVENTS_PER_BATCH = 100

export interface DropBodiesDeps {
  readonly db: Kysely<Database>
  readonly clock: () => number
}

/**
 * Removes bodies that are older than they are to be kept, in the order of arrival and no more than some at a time.
 * What was read from them stays, and their hashes, by which they are known when they come again. Events that wait, or
 * can't be used yet, keep theirs until they do.
 * @param before epoch milliseconds
 * @returns how many events were looked at; 0: there is nothing to do now
 */
export function createDropBodies({ db, clock }: DropBodiesDeps): (before: number) => Promise<number> {
  return (before) =>
    db.transaction().execute(async (trx) => {
      const aging = await loadAgingBodies(trx, await expiredTo(trx), EVENTS_PER_BATCH)
      const firstYoung = aging.findIndex(({ receivedAt }) => receivedAt >= before)
      const old = firstYoung === -1 ? aging : aging.slice(0, firstYoung)
      const kept = old.filter(({ isKept }) => isKept)
      const now = clock()
      if (old.length === 0) return dropOthers(trx, before, now)
      await passOverBodies(trx, seqsOf(kept.filter(({ isWaiting }) => isWaiting)))
      await expireBodies(trx, seqsOf(kept.filter(({ isWaiting }) => !isWaiting)), now)
      await saveExpiredTo(trx, old.at(-1)?.seq ?? 0)
      return old.length
    })
}

/** Those of events that wait no more, and other bodies that came under the ids of events. */
async function dropOthers(trx: Transaction<Database>, before: number, now: number): Promise<number> {
  const settled = await takeSettledBodies(trx, EVENTS_PER_BATCH)
  await expireBodies(trx, settled, now)
  return settled.length + (await expireConflicts(trx, before, now, EVENTS_PER_BATCH))
}

function seqsOf(events: readonly { readonly seq: number }[]): readonly number[] {
  return events.map(({ seq }) => seq)
}
