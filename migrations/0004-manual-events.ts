import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/** Finds what was done by hand to a customer, which every answer about them asks for, among all their events. */
export function manualEvents(): Migration {
  return {
    async up(db: Kysely<unknown>) {
      // Few events are of this kind. SQLite reads this index only for a query that says the same condition in literals.
      await db.schema
        .createIndex('events_by_hand')
        .on('events')
        .columns(['environment', 'customer_id', 'created_at'])
        .where(sql<boolean>`type like 'manual.%'`)
        .execute()
    },
  }
}
