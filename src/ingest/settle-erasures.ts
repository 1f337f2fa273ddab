import type { Kysely } from 'kysely'
import { openDatabase } from '../store/dialect.js'
import { addFingerprints, type ErasedIds, loadErasedIds } from '../store/erased-ids.js'
import { loadDoubt, saveDoubt } from '../store/erasure-doubt.js'
import {
  appendDoubt,
  appendErasures,
  erasureKey,
  isWholeList,
  type RecordedErasure,
  readDoubt,
  readErasures,
} from '../store/erasure-file.js'
import { keepFingerprintKey } from '../store/fingerprint-key.js'
import { loadErasureActs } from '../store/manual-events.js'
import type { Database } from '../store/schema.js'
import type { WriteBatch } from './commit.js'
import type { RecordedDelivery } from './delivery.js'
import { erasureEvent } from './erase.js'
import { isErasure } from './erased-people.js'
import { MANUAL_ENDPOINT } from './prepare.js'

/*
 * Erasures are written down in a small file beside the database: it stays when a backup takes the database's place,
 * and then tells which erasures were made since.
 */

/** A batch that erases anybody is not acknowledged before the file tells so too, durably. */
export function recordingErasures(db: Kysely<Database>, file: string, writeBatch: WriteBatch): WriteBatch {
  return async (deliveries) => {
    const committed = await writeBatch(deliveries)
    if (committed.deliveries.some(({ prepared }) => isErasure(prepared))) await record(db, file)
    return committed
  }
}

/**
 * Makes file and database tell the same: what a crash kept from being written down is written, what the database does
 * not know is done again, as it was, and both say whether some may be missing.
 * @returns how many were done again
 */
export async function settleErasures(
  db: Kysely<Database>,
  file: string,
  writeBatch: WriteBatch,
): Promise<number> {
  await record(db, file)
  const missing = await loadUnsettled(db, file)
  if (missing.length > 0) {
    const [key] = missing.flatMap(({ fingerprints }) => fingerprints.map((one) => one.key))
    if (key !== undefined) await db.transaction().execute((trx) => keepFingerprintKey(trx, key))
    await writeBatch(missing.map(toDelivery))
  }
  const unknown = readErasures(file).filter(isUnknownIn(await loadErasedIds(db)))
  if (unknown.length > 0) {
    await db.transaction().execute(async (trx) => {
      for (const erasure of unknown) await addFingerprints(trx, erasure, erasure.fingerprints)
    })
  }
  return missing.length
}

/** Those on the list that a database does not know. */
export async function loadUnsettled(db: Kysely<Database>, file: string): Promise<readonly RecordedErasure[]> {
  // First: whoever is erased meanwhile gets into the database, and then on the list.
  const recorded = readErasures(file)
  return recorded.filter(isMissingIn(await loadErasedIds(db)))
}

/**
 * Writes down the erasures that a database knows which another is about to replace; and that some may be missing, where
 * neither that database, which can't be read or is in doubt itself, nor the list tells of all.
 *
 * @param databaseFile null: there is none
 * @param now epoch milliseconds
 */
export async function recordErasuresOf(
  databaseFile: string | null,
  file: string,
  now: number,
): Promise<void> {
  const known = databaseFile === null ? null : await erasuresKnownTo(databaseFile)
  const knowsAll = known !== null && known.doubt === null
  // Ahead of any erasure: interrupted, a list that is begun here must not pass for a whole one.
  if (!knowsAll && !isWholeList(file)) appendDoubt(file, now)
  if (known !== null) append(file, known.acts)
}

interface KnownErasures {
  readonly acts: readonly RecordedErasure[]
  readonly doubt: number | null
}

/** Null where they can't be read: whatever is wrong with that database, what takes its place must not fail for it. */
async function erasuresKnownTo(databaseFile: string): Promise<KnownErasures | null> {
  try {
    const db = openDatabase(databaseFile, { readOnly: true })
    try {
      return { acts: await loadErasureActs(db), doubt: await loadDoubt(db) }
    } finally {
      await db.destroy()
    }
  } catch {
    return null
  }
}

function isMissingIn(erased: ErasedIds): (erasure: RecordedErasure) => boolean {
  return ({ environment, customerId }) => erased.get(environment)?.ids.has(customerId) !== true
}

/** Whether they were known by something that the database does not know them by. */
function isUnknownIn(erased: ErasedIds): (erasure: RecordedErasure) => boolean {
  return ({ environment, fingerprints }) => {
    const own = erased.get(environment)?.fingerprints ?? []
    return fingerprints.some(({ key, known }) => {
      const there = own.find((one) => one.key === key)?.known
      return known.some((one) => there?.has(one) !== true)
    })
  }
}

async function record(db: Kysely<Database>, file: string): Promise<void> {
  await settleDoubt(db, file)
  append(file, await loadErasureActs(db))
}

/** A whole list ends the doubt. One that is not tells of it, also where the line that did so went with the file. */
async function settleDoubt(db: Kysely<Database>, file: string): Promise<void> {
  const known = await loadDoubt(db)
  const told = readDoubt(file)
  const doubt = isWholeList(file) ? null : (told ?? known)
  if (doubt !== known) await db.transaction().execute((trx) => saveDoubt(trx, doubt))
  if (doubt !== null && told === null) appendDoubt(file, doubt)
}

function append(file: string, acts: readonly RecordedErasure[]): void {
  const recorded = new Set(readErasures(file).map(erasureKey))
  appendErasures(
    file,
    acts.filter((erasure) => !recorded.has(erasureKey(erasure))),
  )
}

function toDelivery(erasure: RecordedErasure): RecordedDelivery {
  const { environment, at } = erasure
  const body = Buffer.from(JSON.stringify({ ...erasureEvent(erasure), createdAt: at }))
  return { endpoint: MANUAL_ENDPOINT, environment, body, headers: null, receivedAt: at }
}
