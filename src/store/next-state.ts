import { sql, type Transaction } from 'kysely'
import type { HoldReason, SourceKey } from '../entitlements/model.js'
import type { Environment } from '../provider/event.js'
import { bulkLookup, bulkUpsert } from './bulk.js'
import type { StoredSourceKey } from './keys.js'
import type { Database, StoredDisposition } from './schema.js'
import type { StoredSource } from './sources.js'

/** A source as it is to stand; null: it is to be no more. */
export interface NextSource {
  readonly key: SourceKey
  readonly folded: StoredSource | null
}

export interface NextDisposition {
  readonly eventId: string
  readonly source: SourceKey
  readonly disposition: StoredDisposition
  readonly reason: HoldReason | null
}

/** One that was deleted meanwhile and came to be again is come by twice. */
const upsertSources = bulkUpsert(
  'next_sources',
  ['environment', 'kind', 'source_id'],
  ['customer_id', 'state', 'history', 'newest_at'],
)

/** An event that has moved meanwhile may still stand under the source that it left. */
const upsertDispositions = bulkUpsert(
  'next_dispositions',
  ['environment', 'event_id'],
  ['kind', 'source_id', 'disposition', 'reason'],
)

/** Keeps what a rebuild found of some sources. */
export async function saveNextState(
  trx: Transaction<Database>,
  environment: Environment,
  sources: readonly NextSource[],
  dispositions: readonly NextDisposition[],
): Promise<void> {
  await upsertSources(
    trx,
    sources.map(({ key, folded }) => ({
      environment,
      kind: key.kind,
      source_id: key.id,
      customer_id: folded?.state.customerId ?? null,
      state: folded && JSON.stringify(folded.state),
      history: folded?.history ?? null,
      newest_at: folded?.state.newestAt ?? 0,
    })),
  )
  await upsertDispositions(
    trx,
    dispositions.map(({ eventId, source, disposition, reason }) => ({
      environment,
      event_id: eventId,
      kind: source.kind,
      source_id: source.id,
      disposition,
      reason,
    })),
  )
}

const removals = (['next_sources', 'next_dispositions'] as const).map((table) =>
  bulkLookup(
    ['environment', 'kind', 'source_id'],
    (isTold) => sql`delete from ${sql.table(table)} where ${isTold}`,
  ),
)

/** Forgets what was found of these sources. */
export async function deleteNextState(
  trx: Transaction<Database>,
  environment: Environment,
  keys: readonly SourceKey[],
): Promise<void> {
  for (const remove of removals) {
    await remove(
      trx,
      keys.map(({ kind, id }) => [environment, kind, id]),
    )
  }
}

/** Whose access may differ: the customers of the sources that differ, as these stand and as they are to. */
export async function loadAffectedCustomers(
  trx: Transaction<Database>,
): Promise<ReadonlyMap<Environment, readonly string[]>> {
  const { rows } = await sql<{ environment: Environment; customer_id: string }>`
    select environment, customer_id from next_sources where customer_id is not null
    union
    select s.environment, s.customer_id from next_sources n
    join sources s on s.environment = n.environment and s.kind = n.kind and s.source_id = n.source_id
    where s.customer_id is not null
    order by 1, 2
  `.execute(trx)
  const found = new Map<Environment, string[]>()
  for (const { environment, customer_id: customerId } of rows) {
    const known = found.get(environment)
    if (known) known.push(customerId)
    else found.set(environment, [customerId])
  }
  return found
}

/** Puts what differs in the place of what stands. */
export async function replaceWithNextState(trx: Transaction<Database>): Promise<void> {
  await sql`
    delete from sources where (environment, kind, source_id) in
      (select environment, kind, source_id from next_sources where state is null)
  `.execute(trx)
  await sql`
    insert into sources (environment, kind, source_id, customer_id, state, history, newest_at)
    select environment, kind, source_id, customer_id, state, history, newest_at
    from next_sources where state is not null
    on conflict (environment, kind, source_id) do update set
      customer_id = excluded.customer_id, state = excluded.state,
      history = excluded.history, newest_at = excluded.newest_at
  `.execute(trx)
  await sql`
    update events set disposition = told.disposition, reason = told.reason from next_dispositions as told
    where events.environment = told.environment and events.event_id = told.event_id
  `.execute(trx)
}

/** Those that a list names, by environment. */
export function byEnvironment(
  keys: readonly StoredSourceKey[],
): ReadonlyMap<Environment, readonly SourceKey[]> {
  const grouped = new Map<Environment, SourceKey[]>()
  for (const { environment, kind, id } of keys) {
    const known = grouped.get(environment)
    if (known) known.push({ kind, id })
    else grouped.set(environment, [{ kind, id }])
  }
  return grouped
}
