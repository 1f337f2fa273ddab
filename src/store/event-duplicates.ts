import { sql, type Transaction } from 'kysely'
import type { Environment } from '../provider/event.js'
import { bulkInsert, bulkStatement } from './bulk.js'
import { type DeliveredEvent, REMOVAL_COLUMNS, removalColumns } from './events.js'
import type { Database } from './schema.js'

/**
 * Counts each delivery on the stored event whose id it has, and answers those that came with another body.
 * Such a body is kept once, however often it comes; the stored event is never touched by it.
 */
export async function recordDuplicates<Delivered extends DeliveredEvent>(
  trx: Transaction<Database>,
  deliveries: readonly Delivered[],
): Promise<readonly Delivered[]> {
  const groups = groupBy(deliveries, ({ environment, eventId }) => eventKey(environment, eventId))
  const storedBodies = await countDeliveries(trx, groups)
  const conflicts = deliveries.filter(
    ({ environment, eventId, bodySha256 }) => storedBodies.get(eventKey(environment, eventId)) !== bodySha256,
  )
  await saveConflicts(trx, conflicts)
  return conflicts
}

const updateCounts = bulkStatement(
  (rows) => sql<{ environment: DeliveredEvent['environment']; event_id: string; body_sha256: string }>`
    with again (environment, event_id, deliveries, received_at) as (${rows})
    update events set
      deliveries = events.deliveries + cast(again.deliveries as bigint),
      last_received_at = case when cast(again.received_at as bigint) > events.last_received_at
        then cast(again.received_at as bigint) else events.last_received_at end
    from again
    where events.environment = again.environment and events.event_id = again.event_id
    returning events.environment, events.event_id, events.body_sha256`,
)

/** Answers the hash of each stored body, by `eventKey`. */
async function countDeliveries(
  trx: Transaction<Database>,
  groups: readonly (readonly DeliveredEvent[])[],
): Promise<ReadonlyMap<string, string>> {
  const counted = groups.flatMap((group) => {
    const [first] = group
    const lastReceivedAt = group.reduce((last, { receivedAt }) => Math.max(last, receivedAt), 0)
    return first === undefined ? [] : [[first.environment, first.eventId, group.length, lastReceivedAt]]
  })
  const rows = await updateCounts(trx, counted)
  return new Map(rows.map((row) => [eventKey(row.environment, row.event_id), row.body_sha256]))
}

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

async function saveConflicts(
  trx: Transaction<Database>,
  conflicts: readonly DeliveredEvent[],
): Promise<void> {
  const groups = groupBy(
    conflicts,
    (other) => `${eventKey(other.environment, other.eventId)} ${other.bodySha256}`,
  )
  const rows = groups.flatMap((group) => {
    const [first] = group
    if (first === undefined) return []
    return {
      environment: first.environment,
      event_id: first.eventId,
      body_sha256: first.bodySha256,
      body: first.body,
      endpoint: first.endpoint,
      headers: JSON.stringify(first.headers),
      received_at: first.receivedAt,
      deliveries: group.length,
      ...removalColumns(first.removed),
    }
  })
  await upsertConflicts(trx, rows)
}

/** Groups in the order of their first members: a statement may tell each row only once. */
function groupBy<Item>(items: readonly Item[], keyOf: (item: Item) => string): readonly (readonly Item[])[] {
  const groups = new Map<string, Item[]>()
  for (const item of items) {
    const group = groups.get(keyOf(item))
    if (group === undefined) groups.set(keyOf(item), [item])
    else group.push(item)
  }
  return [...groups.values()]
}

/** One text for one event of one environment; no environment holds a space, so no two events share it. */
function eventKey(environment: Environment, eventId: string): string {
  return `${environment} ${eventId}`
}
