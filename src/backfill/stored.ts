/* What reports are decided from: when a reading began, and what is stored by then. */

import { sourceKey } from '../entitlements/source-of.js'
import { BACKFILL_ENDPOINT } from '../provider/endpoint.js'
import type { Environment } from '../provider/event.js'
import { newestSeq } from '../store/event-walk.js'
import type { DeliveryInput } from '../store/events.js'
import type { Db } from '../store/schema.js'
import { policyInForce } from '../store/settings.js'
import { loadLinks, loadSourceRows, readHistory } from '../store/sources.js'
import { paymentIdOf, type ReadRecord, type Stored, sourcesOf } from './report.js'
import type { Reading, Report } from './reporter.js'

/** Begins a reading: before the first record of it is asked for. */
export async function beginReading(
  db: Db,
  environment: Environment,
  by: Reading['by'],
  at: number,
): Promise<Reading> {
  return { environment, at, newestSeq: await newestSeq(db), by, policy: await policyInForce(db) }
}

/** Everything that reports about these records depend on. */
export async function loadStored(
  db: Db,
  environment: Environment,
  records: readonly ReadRecord[],
): Promise<Stored> {
  const paymentIds = records.map(paymentIdOf).filter((id) => id !== null)
  const links = await loadLinks(db, environment, [...new Set(paymentIds)])
  const keys = new Map(
    records.flatMap((record) => sourcesOf(record, links)).map((key) => [sourceKey(key), key]),
  )
  const rows = await loadSourceRows(db, environment, [...keys.values()])
  const histories = rows.map(
    (row) => [sourceKey({ kind: row.kind, id: row.source_id }), readHistory(row)] as const,
  )
  return { links, histories: new Map(histories) }
}

/** The reported events as they are stored. */
export function deliveriesOf({ events }: Report, { environment, at }: Reading): readonly DeliveryInput[] {
  return events.map(({ body }) => ({
    ...{ environment, endpoint: BACKFILL_ENDPOINT, headers: 'reported', body, receivedAt: at },
  }))
}
