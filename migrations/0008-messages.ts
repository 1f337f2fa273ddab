import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import type { ColumnTypes } from './column-types.js'

/** Changes of access for the merchant's own addresses, and how their delivery went. */
export function messages({ text, integer, tableOptions }: ColumnTypes): Migration {
  return {
    async up(db: Kysely<unknown>) {
      await db.schema
        .createTable('messages')
        .addColumn('cursor', integer, (column) =>
          column.notNull().references('changes.cursor').onDelete('cascade'),
        )
        .addColumn('webhook', text, (column) => column.notNull())
        .addColumn('epoch', text, (column) => column.notNull())
        .addColumn('type', text, (column) => column.notNull())
        .addColumn('environment', text, (column) => column.notNull())
        .addColumn('customer_id', text, (column) => column.notNull())
        .addColumn('queued_at', integer, (column) => column.notNull())
        .addColumn('status', text, (column) => column.notNull().defaultTo('pending'))
        .addColumn('first_attempt_at', integer)
        .addColumn('attempts', integer, (column) => column.notNull().defaultTo(0))
        .addColumn('attempt_log', text, (column) => column.notNull().defaultTo('[]'))
        .addColumn('next_attempt_at', integer)
        .addPrimaryKeyConstraint('messages_key', ['cursor', 'webhook'])
        .modifyEnd(tableOptions)
        .execute()
      await db.schema
        .createIndex('messages_due')
        .on('messages')
        .columns(['webhook', 'next_attempt_at'])
        .where(sql.ref('next_attempt_at'), 'is not', null)
        .execute()
      await db.schema
        .createIndex('messages_by_customer')
        .on('messages')
        .columns(['customer_id', 'environment', 'cursor'])
        .execute()
      await db.schema.createIndex('messages_by_status').on('messages').columns(['status', 'cursor']).execute()
    },
  }
}
