import type { Kysely, Transaction } from 'kysely'
import type { Environment } from '../provider/event.js'
import type { Fingerprints, KnownFingerprints, PersonWord } from '../provider/fingerprints.js'
import type { Database } from './schema.js'

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

/** Everybody in one environment who is erased, and by what they are known. */
export interface Erased {
  readonly ids: ReadonlySet<string>
  /** At most one of each key. */
  readonly fingerprints: readonly KnownFingerprints[]
}

export type ErasedIds = ReadonlyMap<Environment, Erased>

export async function loadErasedIds(db: Kysely<Database>): Promise<ErasedIds> {
  const rows = await db
    .selectFrom('erasures')
    .select(['environment', 'customer_id', 'fingerprints'])
    .execute()
  const environments = new Set(rows.map(({ environment }) => environment))
  return new Map(
    [...environments].map((environment) => {
      const own = rows.filter((row) => row.environment === environment)
      const ids = new Set(own.map((row) => row.customer_id))
      return [
        environment,
        { ids, fingerprints: joined(own.flatMap((row) => fingerprintsIn(row.fingerprints))) },
      ]
    }),
  )
}

function joined(fingerprints: readonly Fingerprints[]): readonly KnownFingerprints[] {
  const byKey = new Map<string, Set<string>>()
  for (const { key, known } of fingerprints) {
    const own = byKey.get(key) ?? new Set()
    for (const one of known) own.add(one)
    byKey.set(key, own)
  }
  return [...byKey].map(([key, known]) => ({ key, known }))
}

export function fingerprintsIn(text: string | null): readonly Fingerprints[] {
  return text === null ? [] : (JSON.parse(text) as Fingerprints[])
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

/** Adds what a store before this one knew somebody by who is erased in both. */
export async function addFingerprints(
  trx: Transaction<Database>,
  { environment, customerId }: Pick<ErasureRecord, 'environment' | 'customerId'>,
  fingerprints: readonly Fingerprints[],
): Promise<void> {
  const row = await trx
    .selectFrom('erasures')
    .select('fingerprints')
    .where('environment', '=', environment)
    .where('customer_id', '=', customerId)
    .executeTakeFirst()
  if (row === undefined) return
  const all = joined([...fingerprintsIn(row.fingerprints), ...fingerprints])
  await trx
    .updateTable('erasures')
    .set({ fingerprints: JSON.stringify(all.map(({ key, known }) => ({ key, known: [...known] }))) })
    .where('environment', '=', environment)
    .where('customer_id', '=', customerId)
    .execute()
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
export async function reopenErasures(
  trx: Transaction<Database>,
  erasures: readonly Pick<UnfinishedErasure, 'environment' | 'customerId'>[],
): Promise<void> {
  for (const { environment, customerId } of erasures) {
    await trx
      .updateTable('erasures')
      .set({ finished_at: null })
      .where('environment', '=', environment)
      .where('customer_id', '=', customerId)
      .execute()
  }
}

export async function saveFinished(
  trx: Transaction<Database>,
  erasures: readonly Pick<UnfinishedErasure, 'environment' | 'customerId'>[],
  now: number,
): Promise<void> {
  for (const { environment, customerId } of erasures) {
    await trx
      .updateTable('erasures')
      .set({ finished_at: now })
      .where('environment', '=', environment)
      .where('customer_id', '=', customerId)
      .execute()
  }
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

/** Those begun before an instant that are not finished. */
export async function countOverdueErasures(db: Kysely<Database>, before: number): Promise<number> {
  const row = await db
    .selectFrom('erasures')
    .select(({ fn }) => fn.countAll().as('count'))
    .where('finished_at', 'is', null)
    .where('erased_at', '<', before)
    .executeTakeFirst()
  return Number(row?.count ?? 0)
}
