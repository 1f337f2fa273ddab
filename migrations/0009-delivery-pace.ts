import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'
import type { ColumnTypes } from './column-types.js'

/** How often events come to each endpoint, so that a silence can be told from a pause. */
export function deliveryPace({ text, keyedTableOptions }: ColumnTypes): Migration {
  return {
    async up(db: Kysely<unknown>) {
      await db.schema
        .createTable('delivery_pace')
        .addColumn('endpoint', text, (column) => column.notNull().primaryKey())
        .addColumn('pace', text, (column) => column.notNull())
        .modifyEnd(keyedTableOptions)
        .execute()
    },
  }
}
