import type { Kysely, Transaction } from 'kysely'
import type { Environment } from '../provider/event.js'
import type { Fingerprints, KnownFingerprints } from '../provider/fingerprints.js'
import type { ErasureRecord } from './erasures.js'
import type { Database } from './schema.js'

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
