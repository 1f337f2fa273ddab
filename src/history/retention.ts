import type { Kysely } from 'kysely'
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

/** Bounds how long arriving deliveries wait for one transaction. */
const EVENTS_PER_BATCH = 100

/**
 * Removes some bodies of events received before an instant (epoch milliseconds), in the order of arrival. What was read
 * from them stays, and so do their hashes, by which they are recognised if they come again. Events that are held or
 * quarantined keep their bodies until they no longer are.
 * @returns how many events it dealt with; 0: there is nothing to do now
 */
export function dropBodies(db: Kysely<Database>, before: number, now: number): Promise<number> {
  return db.transaction().execute(async (trx) => {
    const aging = await loadAgingBodies(trx, await expiredTo(trx), EVENTS_PER_BATCH)
    const firstYoung = aging.findIndex(({ receivedAt }) => receivedAt >= before)
    const old = firstYoung === -1 ? aging : aging.slice(0, firstYoung)
    const last = old.at(-1)
    if (last === undefined) {
      const settled = await takeSettledBodies(trx, EVENTS_PER_BATCH)
      await expireBodies(trx, settled, now)
      return settled.length + (await expireConflicts(trx, before, now, EVENTS_PER_BATCH))
    }
    const seqsOf = (isWaiting: boolean) =>
      old.filter((event) => event.isKept && event.isWaiting === isWaiting).map(({ seq }) => seq)
    await passOverBodies(trx, seqsOf(true))
    await expireBodies(trx, seqsOf(false), now)
    await saveExpiredTo(trx, last.seq)
    return old.length
  })
}
