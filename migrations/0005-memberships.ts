import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'
import type { ColumnTypes } from './column-types.js'

/** Who should be, and who is, a member of the roles and groups that follow access. */
export function memberships({ text, integer, sequence, tableOptions }: ColumnTypes): Migration {
  return {
    async up(db: Kysely<unknown>) {
      await db.schema
        .createTable('memberships')
        .addColumn('environment', text, (column) => column.notNull())
        .addColumn('target', text, (column) => column.notNull())
        .addColumn('account_id', text, (column) => column.notNull())
        .addColumn('customer_id', text, (column) => column.notNull())
        .addColumn('state', text, (column) => column.notNull())
        .addColumn('desired', integer, (column) => column.notNull())
        .addColumn('desired_since', integer, (column) => column.notNull())
        .addColumn('reason', text)
        .addColumn('applied', text, (column) => column.notNull())
        .addColumn('applied_at', integer)
        .addColumn('given', integer, (column) => column.notNull())
        .addColumn('confirmed', integer, (column) => column.notNull().defaultTo(0))
        .addColumn('attempts', integer, (column) => column.notNull().defaultTo(0))
        .addColumn('next_attempt_at', integer)
        .addColumn('error_code', text)
        .addColumn('error', text)
        .addPrimaryKeyConstraint('memberships_key', ['environment', 'target', 'account_id'])
        .modifyEnd(tableOptions)
        .execute()
      await db.schema
        .createIndex('memberships_by_state')
        .on('memberships')
        // In the order in which work is picked: a target that is stopped, or removals that wait, cost nothing then.
        .columns(['environment', 'target', 'state', 'desired', 'confirmed', 'next_attempt_at'])
        .execute()
      await db.schema
        .createIndex('memberships_by_applied')
        .on('memberships')
        .columns(['environment', 'target', 'applied', 'applied_at'])
        .execute()
      await db.schema
        .createIndex('memberships_by_account')
        .on('memberships')
        .columns(['environment', 'account_id'])
        .execute()
      await db.schema
        .createIndex('memberships_by_customer')
        .on('memberships')
        .columns(['environment', 'customer_id'])
        .execute()

      await db.schema
        .createTable('sync_marks')
        .addColumn('seq', sequence)
        .addColumn('environment', text, (column) => column.notNull())
        .addColumn('customer_id', text, (column) => column.notNull())
        .modifyEnd(tableOptions)
        .execute()
    },
  }
}
