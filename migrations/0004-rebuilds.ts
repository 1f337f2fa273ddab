import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'
import type { ColumnTypes } from './column-types.js'

/** What a rebuild has found so far, beside the live state: only what differs from it, until the swap. */
export function rebuilds({ text, integer, tableOptions, keyedTableOptions }: ColumnTypes): Migration {
  return {
    async up(db: Kysely<unknown>) {
      await db.schema
        .createTable('next_sources')
        .addColumn('environment', text, (column) => column.notNull())
        .addColumn('kind', text, (column) => column.notNull())
        .addColumn('source_id', text, (column) => column.notNull())
        .addColumn('customer_id', text)
        .addColumn('state', text)
        .addColumn('history', text)
        .addColumn('newest_at', integer, (column) => column.notNull())
        .addPrimaryKeyConstraint('next_sources_key', ['environment', 'kind', 'source_id'])
        .modifyEnd(tableOptions)
        .execute()

      await db.schema
        .createTable('next_dispositions')
        .addColumn('environment', text, (column) => column.notNull())
        .addColumn('event_id', text, (column) => column.notNull())
        .addColumn('kind', text, (column) => column.notNull())
        .addColumn('source_id', text, (column) => column.notNull())
        .addColumn('disposition', text, (column) => column.notNull())
        .addColumn('reason', text)
        .addPrimaryKeyConstraint('next_dispositions_key', ['environment', 'event_id'])
        .modifyEnd(tableOptions)
        .execute()
      await db.schema
        .createIndex('next_dispositions_by_source')
        .on('next_dispositions')
        .columns(['environment', 'kind', 'source_id'])
        .execute()

      await db.schema
        .createTable('rebuild_marks')
        .addColumn('environment', text, (column) => column.notNull())
        .addColumn('kind', text, (column) => column.notNull())
        .addColumn('source_id', text, (column) => column.notNull())
        .addPrimaryKeyConstraint('rebuild_marks_key', ['environment', 'kind', 'source_id'])
        .modifyEnd(keyedTableOptions)
        .execute()
    },
  }
}
