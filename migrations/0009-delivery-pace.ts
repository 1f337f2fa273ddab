import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'
import type { ColumnTypes } from './column-types.js'

/** How often events come to each endpoint, so that a silence can be told from a pause. */
export function deliveryPace({ text, integer, keyedTableOptions }: ColumnTypes): Migration {
  return {
    async up(db: Kysely<unknown>) {
      await db.schema
        .createTable('delivery_pace')
        .addColumn('endpoint', text, (column) => column.notNull())
        .addColumn('arrivals', integer, (column) => column.notNull())
        .addColumn('first_at', integer, (column) => column.notNull())
        .addColumn('last_at', integer, (column) => column.notNull())
        .addColumn('mean_interval', integer)
        .addColumn('week_at', integer, (column) => column.notNull())
        .addColumn('longest', integer, (column) => column.notNull())
        .addColumn('longest_before', integer, (column) => column.notNull())
        .addPrimaryKeyConstraint('delivery_pace_key', ['endpoint'])
        .modifyEnd(keyedTableOptions)
        .execute()
    },
  }
}
