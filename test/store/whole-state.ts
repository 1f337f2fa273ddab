import type { Kysely } from 'kysely'
import type { Database } from '../../src/store/schema.js'
import { customersIn, eventsIn, SOURCE_COLUMNS } from './tables.js'

/** Everything that must not depend on the order of arrival, read from the tables themselves. */
export async function wholeState(db: Kysely<Database>) {
  const sources = await db
    .selectFrom('sources')
    .select(SOURCE_COLUMNS)
    .orderBy('kind')
    .orderBy('source_id')
    .execute()
  return {
    entitlements: await db
      .selectFrom('entitlements')
      .selectAll()
      .orderBy('customer_id')
      .orderBy('product_id')
      .execute(),
    sources: sources.map(({ history, ...source }) => ({ ...source, history: eventsIn(history) })),
    references: await db
      .selectFrom('customer_references')
      .selectAll()
      .orderBy('name')
      .orderBy('value')
      .orderBy('customer_id')
      .execute(),
    erased: await db
      .selectFrom('erasures')
      .select(['customer_id', 'erased_at', 'was_known'])
      .orderBy('customer_id')
      .execute(),
    bodiesOfErased: await db
      .selectFrom('events')
      .innerJoin('erasures', 'erasures.customer_id', 'events.customer_id')
      .select(['events.event_id', 'events.body', 'events.body_removed', 'events.normalized'])
      .where('events.headers', '!=', 'null')
      .orderBy('events.event_id')
      .execute(),
    links: await db.selectFrom('payment_links').selectAll().orderBy('payment_id').execute(),
    customers: await customersIn(db),
    events: await db
      .selectFrom('events')
      .select(['event_id', 'disposition', 'reason', 'source_kind', 'source_id'])
      .orderBy('event_id')
      .execute(),
  }
}
