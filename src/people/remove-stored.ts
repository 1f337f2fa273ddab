import { setImmediate as turn } from 'node:timers/promises'
import { redact, redactBody } from '../provider/redact.js'
import { engineOf } from '../store/engine.js'
import {
  type ErasureRecord,
  finishErasure,
  loadConflictsOfPerson,
  loadErasedIds,
  loadSeqsOfPerson,
  loadStoredBodies,
  loadUnfinishedErasures,
  type StoredBody,
  saveRedacted,
  saveRedactedConflict,
} from '../store/erasures.js'
import type { Db } from '../store/schema.js'

/** Deliveries wait for one transaction: a body of a mebibyte takes about 50 ms, most take less than one. */
const EVENTS_PER_TRANSACTION = 8

/**
 * Removes the data of everyone whose erasure is not finished, and empties the write-ahead log of it. Deliveries have
 * their turn between two transactions; if interrupted, the next call starts again.
 * @throws {LatchkeyError} `store_unavailable` if an event of somebody can't be read: all others are finished by then
 */
export async function finishErasures(db: Db, clock: () => number): Promise<void> {
  const unfinished = await loadUnfinishedErasures(db)
  const failures: unknown[] = []
  for (const erasure of unfinished) {
    // One unreadable event must not keep other people from being erased.
    await removeStored(db, erasure, clock).catch((error: unknown) => failures.push(error))
  }
  // Best effort: a reader of the log, such as a backup, keeps it until the daemon stops.
  if (unfinished.length > 0) await engineOf(db).emptyLog(db)
  if (failures.length > 0) throw failures[0]
}

async function removeStored(db: Db, erasure: ErasureRecord, clock: () => number): Promise<void> {
  const erased = (await loadErasedIds(db)).get(erasure.environment) ?? new Set()
  const seqs = await loadSeqsOfPerson(db, erasure)
  let hadEvents = false
  for (let i = 0; i < Math.max(1, seqs.length); i += EVENTS_PER_TRANSACTION) {
    if (i > 0) await turn()
    await db.transaction().execute(async (trx) => {
      const stored = await loadStoredBodies(trx, seqs.slice(i, i + EVENTS_PER_TRANSACTION))
      for (const one of stored) {
        hadEvents ||= isOf(one, erasure) && one.eventId !== erasure.eventId
        const left = redact(one, erased)
        if (left !== null) await saveRedacted(trx, one.seq, left, clock())
      }
      const theirs = new Set(stored.filter((one) => isOf(one, erasure)).map(({ eventId }) => eventId))
      for (const other of await loadConflictsOfPerson(trx, erasure, [...theirs])) {
        const body = redactBody(other.body, theirs.has(other.eventId), erased)
        if (body === 'untouched') continue
        await saveRedactedConflict(trx, erasure, other, body, clock())
      }
      if (i + EVENTS_PER_TRANSACTION >= seqs.length) await finishErasure(trx, erasure, hadEvents, clock())
    })
  }
}

function isOf({ event, owner }: StoredBody, { customerId }: ErasureRecord): boolean {
  return event !== null && (event.customerId ?? owner) === customerId
}
