import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'
import type { ColumnTypes } from './column-types.js'

/** Which records of the service were asked for within the last hour, since events wait for what they say. */
export function askedRecords({ text, integer, keyedTableOptions }: ColumnTypes): Migration {
  return {
    async up(db: Kysely<unknown>) {
      await db.schema
        .createTable('asked_records')
        .addColumn('environment', text, (column) => column.notNull())
        .addColumn('kind', text, (column) => column.notNull())
        .addColumn('record_id', text, (column) => column.notNull())
        .addColumn('asked_at', integer, (column) => column.notNull())
        .addPrimaryKeyConstraint('asked_records_key', ['environment', 'kind', 'record_id'])
        .modifyEnd(keyedTableOptions)
        .execute()
    },
  }
}
