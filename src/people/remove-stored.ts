import { setImmediate as turn } from 'node:timers/promises'
import { redact, redactBody } from '../provider/redact.js'
import { alone, engineOf } from '../store/engine.js'
import {
  type ErasureRecord,
  finishErasure,
  loadConflictsOfPerson,
  loadErasedIds,
  loadSeqsOfOwnSources,
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
  const removed = new Set<number>()
  let left = await loadSeqsOfPerson(db, erasure)
  let hadEvents = false
  for (let isFinished = false; !isFinished; ) {
    if (removed.size > 0) await turn()
    await alone(db, async (trx) => {
      // A delivery meanwhile may have said that a stored event is theirs.
      const late = left.length > EVENTS_PER_TRANSACTION ? [] : await loadSeqsOfOwnSources(trx, erasure)
      const all = [...new Set([...left, ...late])].filter((seq) => !removed.has(seq))
      const seqs = all.slice(0, EVENTS_PER_TRANSACTION)
      const stored = await loadStoredBodies(trx, seqs)
      for (const one of stored) {
        hadEvents ||= isOf(one, erasure) && one.eventId !== erasure.eventId
        const rest = redact(one, erased)
        if (rest !== null) await saveRedacted(trx, one.seq, rest, clock())
      }
      const theirs = new Set(stored.filter((one) => isOf(one, erasure)).map(({ eventId }) => eventId))
      for (const other of await loadConflictsOfPerson(trx, erasure, [...theirs])) {
        const body = redactBody(other.body, theirs.has(other.eventId), erased)
        if (body === 'untouched') continue
        await saveRedactedConflict(trx, erasure, other, body, clock())
      }
      isFinished = seqs.length === all.length
      if (isFinished) await finishErasure(trx, erasure, hadEvents, clock())
      for (const seq of seqs) removed.add(seq)
      left = all.slice(seqs.length)
    })
  }
}

function isOf({ event, owner }: StoredBody, { customerId }: ErasureRecord): boolean {
  return event !== null && (event.customerId ?? owner) === customerId
}
