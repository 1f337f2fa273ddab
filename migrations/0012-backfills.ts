import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'
import type { ColumnTypes } from './column-types.js'

/** What a running backfill has read and still needs. Empty while none runs. */
export function backfills({ text, integer, tableOptions }: ColumnTypes): Migration {
  return {
    async up(db: Kysely<unknown>) {
      await db.schema
        .createTable('backfill_records')
        .addColumn('environment', text, (column) => column.notNull())
        .addColumn('kind', text, (column) => column.notNull())
        .addColumn('id', text, (column) => column.notNull())
        .addColumn('part', text, (column) => column.notNull())
        .addColumn('record', text)
        .addColumn('read_at', integer)
        .addColumn('newest_seq', integer)
        .addPrimaryKeyConstraint('backfill_records_key', ['environment', 'kind', 'id', 'part'])
        .modifyEnd(tableOptions)
        .execute()
    },
  }
}
