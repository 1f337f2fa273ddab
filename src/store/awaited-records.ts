/* Records of the service that may say what held events wait for, and which of them were just asked for. */

import { sql } from 'kysely'
import type { Environment } from '../provider/event.js'
import { bulkUpsert } from './bulk.js'
import type { Db, Tx } from './schema.js'

/** A payment or a subscription of the service. */
export interface RecordKey {
  readonly environment: Environment
  readonly kind: 'payment' | 'subscription'
  readonly id: string
}

/** After this time a record may be asked for again. */
const ASKED_LATELY_MS = 60 * 60 * 1000

/**
 * Those of events that arrived after an instant, and not after another, but that were not asked for lately; the one that
 * events have waited for longest comes first. An event that names no source waits for another event, not for a record.
 */
export async function loadAwaitedRecords(
  db: Db,
  environment: Environment,
  { after, until }: { readonly after: number; readonly until: number },
  now: number,
  limit: number,
): Promise<readonly RecordKey[]> {
  // How it was paid is said by the payment alone. The condition in literals lets SQLite use the index of waiting events.
  const { rows } = await sql<Omit<RecordKey, 'environment'>>`
    select awaited.kind, awaited.id from (
      select case when reason = 'rail_unknown' then 'payment' else source_kind end as kind,
        case when reason = 'rail_unknown' then payment_id else source_id end as id, min(received_at) as since
      from events
      where environment = ${environment} and disposition = 'held' and disposition in ('held', 'quarantined')
        and reason in ('customer_unknown', 'product_unknown', 'rail_unknown')
        and received_at > ${after} and received_at <= ${until}
      group by 1, 2) as awaited
    left join asked_records as asked
      on asked.environment = ${environment} and asked.kind = awaited.kind and asked.record_id = awaited.id
        and asked.asked_at > ${now - ASKED_LATELY_MS} and asked.asked_at <= ${now}
    where asked.asked_at is null and awaited.id is not null
    order by awaited.since, awaited.kind, awaited.id limit ${limit}`.execute(db)
  return rows.map((row) => ({ environment, ...row }))
}

const upsert = bulkUpsert('asked_records', ['environment', 'kind', 'record_id'])

/** Notes that a record is asked for, and forgets those that may be asked for again. */
export async function noteAskedRecord(
  trx: Tx,
  { environment, kind, id }: RecordKey,
  now: number,
): Promise<void> {
  await trx
    .deleteFrom('asked_records')
    .where('asked_at', '<=', now - ASKED_LATELY_MS)
    .execute()
  await upsert(trx, [{ environment, kind, record_id: id, asked_at: now }])
}
