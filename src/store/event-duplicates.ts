import { sql, type Transaction } from 'kysely'
import { bulkInsert, bulkStatement } from './bulk.js'
import { type DeliveredEvent, REMOVAL_COLUMNS, removalColumns } from './events.js'
import type { Database } from './schema.js'

const countDeliveries = bulkStatement(
  (rows) => sql<{ environment: string; event_id: string; body_sha256: string }>`
    with again (environment, event_id, deliveries, received_at) as (${rows})
    update events set
      deliveries = events.deliveries + cast(again.deliveries as bigint),
      last_received_at = case when cast(again.received_at as bigint) > events.last_received_at
        then cast(again.received_at as bigint) else events.last_received_at end
    from again
    where events.environment = again.environment and events.event_id = again.event_id
    returning events.environment, events.event_id, events.body_sha256`,
)

const upsertConflicts = bulkInsert(
  'event_conflicts',
  [
    'environment',
    'event_id',
    'body_sha256',
    'body',
    'endpoint',
    'headers',
    'received_at',
    'deliveries',
    ...REMOVAL_COLUMNS,
  ],
  sql`on conflict (environment, event_id, body_sha256)
    do update set deliveries = event_conflicts.deliveries + excluded.deliveries`,
)

/**
 * Counts each delivery on the stored event whose id it has, and returns those that came with another body.
 * Such a body is kept once, however often it comes; it never changes the stored event.
 */
export async function recordDuplicates<Delivered extends DeliveredEvent>(
  trx: Transaction<Database>,
  deliveries: readonly Delivered[],
): Promise<readonly Delivered[]> {
  const keyOf = ({ environment, eventId }: DeliveredEvent) => `${environment} ${eventId}`
  const stored = await countDeliveries(
    trx,
    tally(deliveries, keyOf).map(({ first, count, lastReceivedAt }) => [
      first.environment,
      first.eventId,
      count,
      lastReceivedAt,
    ]),
  )
  const storedBodies = new Map(stored.map((row) => [`${row.environment} ${row.event_id}`, row.body_sha256]))
  const conflicts = deliveries.filter((one) => storedBodies.get(keyOf(one)) !== one.bodySha256)
  await upsertConflicts(
    trx,
    tally(conflicts, (other) => `${keyOf(other)} ${other.bodySha256}`).map(({ first, count }) => ({
      environment: first.environment,
      event_id: first.eventId,
      body_sha256: first.bodySha256,
      body: first.body,
      endpoint: first.endpoint,
      headers: JSON.stringify(first.headers),
      received_at: first.receivedAt,
      deliveries: count,
      ...removalColumns(first.removed),
    })),
  )
  return conflicts
}

/** Deliveries with the same key as one, since a statement may change each row only once. */
function tally(deliveries: readonly DeliveredEvent[], keyOf: (delivery: DeliveredEvent) => string) {
  return [...Map.groupBy(deliveries, keyOf).values()].flatMap((group) => {
    const [first] = group
    const lastReceivedAt = Math.max(...group.map(({ receivedAt }) => receivedAt))
    return first === undefined ? [] : { first, count: group.length, lastReceivedAt }
  })
}
