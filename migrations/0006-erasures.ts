import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import type { ColumnTypes } from './column-types.js'

/** Who was erased, the few events that only an erasure looks for, and what retention has passed over. */
export function erasures({ text, integer, keyedTableOptions }: ColumnTypes): Migration {
  return {
    async up(db: Kysely<unknown>) {
      await db.schema
        .createTable('erasures')
        .addColumn('environment', text, (column) => column.notNull())
        .addColumn('customer_id', text, (column) => column.notNull())
        .addColumn('event_id', text, (column) => column.notNull())
        .addColumn('erased_at', integer, (column) => column.notNull())
        .addColumn('was_known', integer, (column) => column.notNull())
        .addColumn('finished_at', integer)
        .addPrimaryKeyConstraint('erasures_key', ['environment', 'customer_id'])
        .modifyEnd(keyedTableOptions)
        .execute()

      // No source leads to these; most of them are about customers, payouts and payment methods.
      await db.schema
        .createIndex('events_without_source')
        .on('events')
        .columns(['environment', 'customer_id'])
        .where(sql.ref('source_kind'), 'is', null)
        .execute()

      await db.schema
        .createTable('waiting_bodies')
        .addColumn('seq', integer, (column) => column.notNull().primaryKey())
        .modifyEnd(keyedTableOptions)
        .execute()

      // Few customers are deleted at the provider, and an erasure may be made to follow that.
      await db.schema
        .createIndex('customers_deleted')
        .on('customers')
        .columns(['environment', 'customer_id'])
        .where(sql.ref('deleted_at'), 'is not', null)
        .execute()
    },
  }
}
