import type { Policy } from '../entitlements/policy.js'
import { pipelined } from '../store/bulk.js'
import { saveFacts } from '../store/customers.js'
import { loadPaces, recordArrivals } from '../store/deliveries.js'
import { alone, beside, engineOf, hasMetAnother } from '../store/engine.js'
import {
  countErased,
  type ErasedIds,
  type ErasureAct,
  loadErasedIds,
  reopenErasures,
  saveErasures,
} from '../store/erasures.js'
import { insertEvents, nextSeqs, recordDuplicates } from '../store/events.js'
import type { Db, Tx } from '../store/schema.js'
import { type Concerns, concernsOf, isErasure, isOf, locksOfAll } from './concerns.js'
import { type Decision, decideAll, type Read } from './decide.js'
import type { Incoming, Receipt } from './delivery.js'
import { saveFolded } from './fold-batch.js'
import { createKnown, type Known } from './known.js'
import { ALONE, createLocks, LOCKS_AT_MOST, type Lock, lockName, NotLockedError } from './locks.js'
import { ownIdOf, prepare } from './prepare.js'
import { type Remark, remarksOn, type WrittenDelivery } from './remarks.js'
import { type TouchedCustomers, writeAccess } from './settle.js'

export interface WrittenBatch {
  /** In the order of the deliveries. */
  readonly receipts: readonly Receipt[]
  readonly remarks: readonly Remark[]
  readonly touched: readonly TouchedCustomers[]
}

/** Commits a batch whole or not at all. */
export type WriteBatch = (deliveries: readonly Incoming[]) => Promise<WrittenBatch>

export interface BatchWriterDeps {
  readonly db: Db
  /** Read in the transaction of each batch: a rebuild may have changed it since the last one. */
  readonly policy: (trx: Tx) => Policy | Promise<Policy>
  readonly clock: () => number
  /** Called with erasures before they are committed, once their dates are known. If omitted, they are not listed. */
  readonly recordErasures?: (acts: readonly ErasureAct[]) => void
  /** Whether no other process writes to the store, so that what was read of it once still holds. */
  readonly isAlone?: boolean
}

/**
 * One transaction per batch: events, sources, entitlements and changes together, so that a committed event is visible in
 * every answer. Everything is read before anything is written: what is read decides what is written.
 */
export function createBatchWriter(deps: BatchWriterDeps): WriteBatch {
  const { db, policy, clock, recordErasures, isAlone = false } = deps
  /** Those that were read last, and how many there were. Nobody is ever taken off, so as many are the same. */
  let erased: { readonly count: number; readonly ids: ErasedIds } | null = null
  const seenVersions = new Set<string>()

  return async (deliveries) => {
    const read = deliveries.map((one) => ('undated' in one ? one : prepare(one)))
    const { written, touched } = await commit(read)
    return {
      receipts: written.map(({ prepared, disposition }) => ({
        id: ownIdOf(prepared.normalized),
        disposition,
      })),
      remarks: written.flatMap((one) => remarksOn(one, seenVersions)),
      touched,
    }
  }

  /**
   * Beside other transactions, with all that the deliveries name locked. Where more turns out to be concerned, it begins
   * again with all of it: whoever locks something late may wait for somebody who waits for them.
   */
  async function commit(read: readonly Read[]) {
    let held = locksOfAll(read)
    const mustBeAlone = read.some(isErasure)
    for (let attempt = 1; !mustBeAlone && attempt <= ATTEMPTS && held.size <= LOCKS_AT_MOST; attempt += 1) {
      try {
        return await beside(db, (trx) => write(trx, read, held))
      } catch (error) {
        if (error instanceof NotLockedError)
          held = new Map([...held, ...error.missing.map((lock) => [lockName(lock), lock] as const)])
        else if (!hasMetAnother(error)) throw error
      }
    }
    return alone(db, (trx) => write(trx, read, null))
  }

  async function loadErased(trx: Tx): Promise<ErasedIds> {
    if (erased !== null && isAlone) return erased.ids
    const count = await countErased(trx)
    if (erased?.count === count) return erased.ids
    const ids = await loadErasedIds(trx)
    erased = { count, ids }
    return ids
  }

  /** @param held null: no other transaction writes */
  async function write(trx: Tx, read: readonly Read[], held: ReadonlyMap<string, Lock> | null) {
    const locks = held === null ? null : createLocks(held)
    const more = [...(held?.values() ?? [])]
    const parts = new Map(
      [...Map.groupBy(read, ({ environment }) => environment)].map(([environment, own]) => [
        environment,
        {
          known: createKnown(trx, environment, locks ?? ALONE),
          concerns: concernsOf(own, more.filter(isOf(environment))),
        },
      ]),
    )
    // The numbers come last: with them the transaction has its place among others, after those that it waited for.
    const [, inForce, known, paces, , numbers] = await pipelined([
      engineOf(trx).lock(trx, [...(held?.keys() ?? [])]),
      policy(trx),
      loadErased(trx),
      loadPaces(trx),
      engineOf(trx).isRemote ? pipelined([...parts.values()].map(readAhead)) : [],
      nextSeqs(trx, read.length),
    ])
    const deciding = decideAll(read, { parts, policy: inForce, erased: known, numbers, clock })
    // What others may be changing decides nothing, not even an error.
    await Promise.allSettled([deciding])
    locks?.assertHeld()
    const { prepared, acts, decisions } = await deciding
    for (const decision of decisions) await save(trx, decision)
    await saveErasures(trx, acts)
    await recordArrivals(
      trx,
      decisions.flatMap((one) => one.fresh),
      paces,
    )
    if (acts.length > 0) recordErasures?.(acts)
    if (acts.length > 0) erased = null
    const results = new Map(
      decisions.flatMap(({ deliveries }) => deliveries.map((one) => [one.prepared, one])),
    )
    return {
      written: prepared.map((one) => results.get(one) as WrittenDelivery),
      touched: decisions.map(({ environment, answersOf }) => ({ environment, customerIds: answersOf })),
    }
  }
}

/** After so many, a transaction waits until it is alone. */
const ATTEMPTS = 5

/** The deliveries of one environment. */
interface Part {
  readonly known: Known
  readonly concerns: Concerns
}

/** Asks in one go for what most batches need. */
async function readAhead({ known, concerns: { eventIds, payments, sources, customers } }: Part) {
  await pipelined([
    known.hashes(eventIds),
    known.links(payments),
    known.sources(sources),
    known.customers(customers),
    known.sourcesOf(customers),
    known.acts(customers),
    known.entitlements(customers),
  ])
}

async function save(trx: Tx, decision: Decision): Promise<void> {
  const { environment, folded, rows, seqs, reopened, again, conflicts, facts, differences, now, causeOf } =
    decision
  await pipelined([
    saveFolded(trx, environment, folded),
    reopenErasures(trx, environment, reopened),
    insertEvents(trx, rows, seqs),
    recordDuplicates(trx, again, conflicts),
    saveFacts(trx, environment, facts),
    writeAccess(trx, environment, differences, now, causeOf),
  ])
}
