import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import type { ColumnTypes } from './column-types.js'

/** What follows from the events: folded sources, who has access to what, and the log of its changes. */
export function entitlements({
  text,
  integer,
  sequence,
  rowNumber,
  tableOptions,
  keyedTableOptions,
}: ColumnTypes): Migration {
  return {
    async up(db: Kysely<unknown>) {
      await db.schema
        .createTable('sources')
        .addColumn('seq', rowNumber)
        .addColumn('environment', text, (column) => column.notNull())
        .addColumn('kind', text, (column) => column.notNull())
        .addColumn('source_id', text, (column) => column.notNull())
        .addColumn('customer_id', text)
        .addColumn('state', text, (column) => column.notNull())
        .addColumn('history', text, (column) => column.notNull())
        .addColumn('newest_at', integer, (column) => column.notNull())
        .addUniqueConstraint('sources_by_key', ['environment', 'kind', 'source_id'])
        .modifyEnd(tableOptions)
        .execute()
      await db.schema
        .createIndex('sources_by_customer')
        .on('sources')
        .columns(['environment', 'customer_id', 'kind', 'source_id'])
        .execute()

      await db.schema
        .createTable('entitlements')
        .addColumn('environment', text, (column) => column.notNull())
        .addColumn('customer_id', text, (column) => column.notNull())
        .addColumn('product_id', text, (column) => column.notNull())
        .addColumn('active', integer, (column) => column.notNull())
        .addColumn('status', text, (column) => column.notNull())
        .addColumn('since', integer)
        .addColumn('until', integer)
        .addColumn('next_change_at', integer)
        // Customers first: two keys then mostly differ in the first column that is compared.
        .addPrimaryKeyConstraint('entitlements_key', ['customer_id', 'environment', 'product_id'])
        .modifyEnd(keyedTableOptions)
        .execute()
      await db.schema
        .createIndex('entitlements_due')
        .on('entitlements')
        .columns(['next_change_at'])
        .where(sql.ref('next_change_at'), 'is not', null)
        .execute()
      await db.schema
        .createIndex('entitlements_by_product')
        .on('entitlements')
        .columns(['environment', 'product_id', 'active', 'customer_id'])
        .execute()

      await db.schema
        .createTable('changes')
        .addColumn('cursor', sequence)
        .addColumn('at', integer, (column) => column.notNull())
        .addColumn('environment', text, (column) => column.notNull())
        .addColumn('customer_id', text, (column) => column.notNull())
        .addColumn('product_id', text, (column) => column.notNull())
        .addColumn('before', text, (column) => column.notNull())
        .addColumn('after', text, (column) => column.notNull())
        .addColumn('cause_kind', text, (column) => column.notNull())
        .addColumn('cause_event_id', text)
        .modifyEnd(tableOptions)
        .execute()
      await db.schema
        .createIndex('changes_by_environment')
        .on('changes')
        .columns(['environment', 'cursor'])
        .execute()
    },
  }
}
