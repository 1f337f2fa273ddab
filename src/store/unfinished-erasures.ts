import type { Kysely, Transaction } from 'kysely'
import type { Environment } from '../provider/event.js'
import type { PersonWord } from '../provider/fingerprints.js'
import type { Database } from './schema.js'

/** What an erasure still has to do. */
export interface UnfinishedErasure {
  readonly environment: Environment
  readonly customerId: string
  /** What else tells of them. */
  readonly knownBy: readonly PersonWord[]
  /** `seq`s. */
  readonly sweptTo: number
  readonly sweepEnd: number
}

export async function loadUnfinishedErasures(db: Kysely<Database>): Promise<readonly UnfinishedErasure[]> {
  const rows = await db
    .selectFrom('erasures')
    .select(['environment', 'customer_id', 'known_by', 'swept_to', 'sweep_end'])
    .where('finished_at', 'is', null)
    .execute()
  return rows.map((row) => ({
    environment: row.environment,
    customerId: row.customer_id,
    knownBy: row.known_by === null ? [] : (JSON.parse(row.known_by) as PersonWord[]),
    sweptTo: row.swept_to,
    sweepEnd: row.sweep_end,
  }))
}

/** Stored events up to a `seq` have been looked through for them; at the end, what else told of them is forgotten. */
export async function saveSwept(
  trx: Transaction<Database>,
  erasures: readonly UnfinishedErasure[],
  reached: number,
): Promise<void> {
  for (const { environment, customerId, sweptTo, sweepEnd } of erasures) {
    if (reached <= sweptTo) continue
    await trx
      .updateTable('erasures')
      .set({ swept_to: Math.min(reached, sweepEnd), ...(reached >= sweepEnd && { known_by: null }) })
      .where('environment', '=', environment)
      .where('customer_id', '=', customerId)
      .execute()
  }
}

/**
 * Something of them was stored until now, and went: what it leaves in unused bytes and in the write-ahead log is still
 * to be overwritten. Whoever is not erased is left alone.
 */
export function reopenErasures(trx: Transaction<Database>, erasures: readonly ErasedKey[]): Promise<void> {
  return setFinishedAt(trx, erasures, null)
}

export function saveFinished(
  trx: Transaction<Database>,
  erasures: readonly ErasedKey[],
  now: number,
): Promise<void> {
  return setFinishedAt(trx, erasures, now)
}

type ErasedKey = Pick<UnfinishedErasure, 'environment' | 'customerId'>

async function setFinishedAt(
  trx: Transaction<Database>,
  erasures: readonly ErasedKey[],
  at: number | null,
): Promise<void> {
  for (const { environment, customerId } of erasures) {
    await trx
      .updateTable('erasures')
      .set({ finished_at: at })
      .where('environment', '=', environment)
      .where('customer_id', '=', customerId)
      .execute()
  }
}
