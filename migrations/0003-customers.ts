import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'
import type { ColumnTypes } from './column-types.js'

/** What is known of each person, the references that lead to them, and the store's own settings. */
export function customers({ text, integer, tableOptions, keyedTableOptions }: ColumnTypes): Migration {
  return {
    async up(db: Kysely<unknown>) {
      await db.schema
        .createTable('customers')
        .addColumn('environment', text, (column) => column.notNull())
        .addColumn('customer_id', text, (column) => column.notNull())
        .addColumn('facts', text, (column) => column.notNull())
        .addColumn('deleted_at', integer)
        .addPrimaryKeyConstraint('customers_key', ['environment', 'customer_id'])
        .modifyEnd(tableOptions)
        .execute()
      // Both lead from a value to customers: the merchant's references, and what is known of the person.
      for (const table of ['customer_references', 'customer_lookups']) {
        await db.schema
          .createTable(table)
          .addColumn('environment', text, (column) => column.notNull())
          .addColumn('name', text, (column) => column.notNull())
          .addColumn('value', text, (column) => column.notNull())
          .addColumn('customer_id', text, (column) => column.notNull())
          .addPrimaryKeyConstraint(`${table}_key`, ['environment', 'name', 'value', 'customer_id'])
          .modifyEnd(keyedTableOptions)
          .execute()
      }
      await db.schema
        .createIndex('customer_references_by_customer')
        .on('customer_references')
        .columns(['environment', 'customer_id'])
        .execute()

      await db.schema
        .createTable('settings')
        .addColumn('key', text, (column) => column.notNull().primaryKey())
        .addColumn('value', text, (column) => column.notNull())
        .modifyEnd(tableOptions)
        .execute()
    },
  }
}
