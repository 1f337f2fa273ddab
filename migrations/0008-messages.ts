import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import type { ColumnTypes } from './column-types.js'

/** Changes of access that the merchant's own address has not taken yet. */
export function messages({ text, integer, tableOptions }: ColumnTypes): Migration {
  return {
    async up(db: Kysely<unknown>) {
      await db.schema
        .createTable('messages')
        .addColumn('cursor', integer, (column) =>
          column.primaryKey().references('changes.cursor').onDelete('cascade'),
        )
        .addColumn('epoch', text, (column) => column.notNull())
        .addColumn('environment', text, (column) => column.notNull())
        .addColumn('customer_id', text, (column) => column.notNull())
        .addColumn('queued_at', integer, (column) => column.notNull())
        .addColumn('first_attempt_at', integer)
        .addColumn('attempts', integer, (column) => column.notNull().defaultTo(0))
        .addColumn('next_attempt_at', integer)
        .addColumn('parked', text)
        .addColumn('last_error', text)
        .modifyEnd(tableOptions)
        .execute()
      await db.schema
        .createIndex('messages_due')
        .on('messages')
        .columns(['next_attempt_at'])
        .where(sql.ref('next_attempt_at'), 'is not', null)
        .execute()
      await db.schema
        .createIndex('messages_by_customer')
        .on('messages')
        .columns(['environment', 'customer_id', 'cursor'])
        .execute()
    },
  }
}
