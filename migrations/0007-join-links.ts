import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'
import type { ColumnTypes } from './column-types.js'

/** Links by which customers tell who they are on a messenger, and what is remembered of its groups. */
export function joinLinks({ text, integer, tableOptions, keyedTableOptions }: ColumnTypes): Migration {
  return {
    async up(db: Kysely<unknown>) {
      await db.schema
        .createTable('join_links')
        .addColumn('sha256', text, (column) => column.notNull().primaryKey())
        .addColumn('kind', text, (column) => column.notNull())
        .addColumn('environment', text, (column) => column.notNull())
        .addColumn('customer_id', text, (column) => column.notNull())
        .addColumn('expires_at', integer, (column) => column.notNull())
        .addColumn('used_by', text)
        .modifyEnd(tableOptions)
        .execute()
      await db.schema
        .createIndex('join_links_by_customer')
        .on('join_links')
        .columns(['environment', 'customer_id'])
        .execute()
      await db.schema.createIndex('join_links_by_end').on('join_links').columns(['expires_at']).execute()

      await db.schema
        .createTable('moved_groups')
        .addColumn('group_id', text, (column) => column.notNull().primaryKey())
        .addColumn('moved_to', text, (column) => column.notNull())
        .modifyEnd(keyedTableOptions)
        .execute()

      await db.schema
        .createTable('owed_unbans')
        .addColumn('group_id', text, (column) => column.notNull())
        .addColumn('account_id', text, (column) => column.notNull())
        .addPrimaryKeyConstraint('owed_unbans_key', ['group_id', 'account_id'])
        .modifyEnd(keyedTableOptions)
        .execute()
    },
  }
}
