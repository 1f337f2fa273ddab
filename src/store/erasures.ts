import type { Kysely, Transaction } from 'kysely'
import type { Environment } from '../provider/event.js'
import type { Fingerprints } from '../provider/fingerprints.js'
import type { Database } from './schema.js'
import type { UnfinishedErasure } from './unfinished-erasures.js'

/** Somebody who was erased. Instants are epoch milliseconds. */
export interface ErasureRecord {
  readonly environment: Environment
  readonly customerId: string
  /** The act by which they were. */
  readonly eventId: string
  readonly erasedAt: number
  /** Whether a purchase, an act or a detail of theirs was stored: if not, the id may not be the one that was meant. */
  readonly wasKnown: boolean
  /** Stored events have been looked through so far, of so many: only the ratio tells. */
  readonly reached: number
  readonly total: number
  /** When nothing of them was left; null: what is stored is being looked through still. */
  readonly finishedAt: number | null
}

const RECORD_COLUMNS = [
  'environment',
  'customer_id',
  'event_id',
  'erased_at',
  'was_known',
  'swept_to',
  'sweep_end',
  'finished_at',
] as const

/** Null for somebody who is not erased. */
export async function loadErasure(
  db: Kysely<Database>,
  environment: Environment,
  customerId: string,
): Promise<ErasureRecord | null> {
  const row = await db
    .selectFrom('erasures')
    .select(RECORD_COLUMNS)
    .where('environment', '=', environment)
    .where('customer_id', '=', customerId)
    .executeTakeFirst()
  if (row === undefined) return null
  return {
    environment: row.environment,
    customerId: row.customer_id,
    eventId: row.event_id,
    erasedAt: row.erased_at,
    wasKnown: row.was_known === 1,
    reached: row.swept_to,
    total: row.sweep_end,
    finishedAt: row.finished_at,
  }
}

/** Everybody is erased once: a second record of the same changes nothing. */
export async function saveErasure(
  trx: Transaction<Database>,
  erasure: Omit<UnfinishedErasure, 'sweptTo'> &
    Pick<ErasureRecord, 'eventId' | 'erasedAt' | 'wasKnown'> & { readonly fingerprints: Fingerprints },
): Promise<void> {
  await trx
    .insertInto('erasures')
    .values({
      environment: erasure.environment,
      customer_id: erasure.customerId,
      event_id: erasure.eventId,
      erased_at: erasure.erasedAt,
      was_known: erasure.wasKnown ? 1 : 0,
      known_by: JSON.stringify(erasure.knownBy),
      fingerprints: JSON.stringify([erasure.fingerprints]),
      swept_to: 0,
      sweep_end: erasure.sweepEnd,
      finished_at: null,
    })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
}

/** Those whom the provider says it deleted, and who are not erased. */
export async function loadDeletedUnerased(
  db: Kysely<Database>,
  limit: number,
): Promise<readonly { readonly environment: Environment; readonly customerId: string }[]> {
  const rows = await db
    .selectFrom('customers')
    .select(['environment', 'customer_id'])
    .where('deleted_at', 'is not', null)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('erasures')
            .select('erasures.event_id')
            .whereRef('erasures.environment', '=', 'customers.environment')
            .whereRef('erasures.customer_id', '=', 'customers.customer_id'),
        ),
      ),
    )
    .limit(limit)
    .execute()
  return rows.map((row) => ({ environment: row.environment, customerId: row.customer_id }))
}

/** Those that are not finished: how many, and how many of them were begun before an instant. */
export async function countUnfinishedErasures(
  db: Kysely<Database>,
  before: number,
): Promise<{ readonly all: number; readonly overdue: number }> {
  const rows = await db.selectFrom('erasures').select('erased_at').where('finished_at', 'is', null).execute()
  return { all: rows.length, overdue: rows.filter(({ erased_at: at }) => at < before).length }
}
