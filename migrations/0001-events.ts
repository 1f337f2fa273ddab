import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import type { ColumnTypes } from './column-types.js'

/** What was delivered, byte for byte, and which subscription each payment belongs to. */
export function events({ text, integer, bytes, rowNumber, tableOptions }: ColumnTypes): Migration {
  return {
    async up(db: Kysely<unknown>) {
      await db.schema
        .createTable('events')
        // Numbered by the writer, and never deleted: no number has to be kept from being given again.
        .addColumn('seq', rowNumber)
        .addColumn('environment', text, (column) => column.notNull())
        .addColumn('event_id', text, (column) => column.notNull())
        .addColumn('endpoint', text, (column) => column.notNull())
        .addColumn('received_at', integer, (column) => column.notNull())
        .addColumn('headers', text, (column) => column.notNull())
        .addColumn('body', bytes)
        .addColumn('body_sha256', text, (column) => column.notNull())
        .addColumn('deliveries', integer, (column) => column.notNull().defaultTo(1))
        .addColumn('last_received_at', integer, (column) => column.notNull())
        .addColumn('disposition', text, (column) => column.notNull())
        .addColumn('reason', text)
        .addColumn('generation', text)
        .addColumn('type', text)
        .addColumn('created_at', integer)
        .addColumn('normalizer_version', integer, (column) => column.notNull())
        .addColumn('normalized', text)
        .addColumn('customer_id', text)
        .addColumn('payment_id', text)
        .addColumn('source_kind', text)
        .addColumn('source_id', text)
        .addColumn('body_removed', text)
        .addColumn('body_removed_at', integer)
        .addColumn('body_bytes', integer)
        .addUniqueConstraint('events_by_id', ['environment', 'event_id'])
        .modifyEnd(tableOptions)
        .execute()
      // Few events wait. SQLite reads this index only for a query that says the same condition in literals.
      await db.schema
        .createIndex('events_waiting')
        .on('events')
        .columns(['environment', 'disposition', 'seq'])
        .where(sql.ref('disposition'), 'in', ['held', 'quarantined'])
        .execute()

      await db.schema
        .createTable('event_conflicts')
        .addColumn('environment', text, (column) => column.notNull())
        .addColumn('event_id', text, (column) => column.notNull())
        .addColumn('body_sha256', text, (column) => column.notNull())
        .addColumn('body', bytes)
        .addColumn('endpoint', text, (column) => column.notNull())
        .addColumn('headers', text, (column) => column.notNull())
        .addColumn('received_at', integer, (column) => column.notNull())
        .addColumn('deliveries', integer, (column) => column.notNull())
        .addColumn('body_removed', text)
        .addColumn('body_removed_at', integer)
        .addColumn('body_bytes', integer)
        .addPrimaryKeyConstraint('event_conflicts_key', ['environment', 'event_id', 'body_sha256'])
        .modifyEnd(tableOptions)
        .execute()

      await db.schema
        .createTable('payment_links')
        .addColumn('environment', text, (column) => column.notNull())
        .addColumn('payment_id', text, (column) => column.notNull())
        .addColumn('subscription_id', text, (column) => column.notNull())
        .addColumn('linked_at', integer, (column) => column.notNull())
        .addColumn('linked_by', text, (column) => column.notNull())
        .addPrimaryKeyConstraint('payment_links_key', ['environment', 'payment_id'])
        .modifyEnd(tableOptions)
        .execute()
    },
  }
}
