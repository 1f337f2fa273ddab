import type { Kysely } from 'kysely'
import type { Migration } from 'kysely/migration'

/** Finds the changes of one customer, and those of a stretch of time, however long the change log is. */
export function changeQuestions(): Migration {
  return {
    async up(db: Kysely<unknown>) {
      // Customers first: two keys then mostly differ in the first column that is compared.
      await db.schema
        .createIndex('changes_by_customer')
        .on('changes')
        .columns(['customer_id', 'environment', 'cursor'])
        .execute()
      // Clocks can be set back, so that the order of writing is not always that of time.
      await db.schema
        .createIndex('changes_by_time')
        .on('changes')
        .columns(['environment', 'at', 'cursor'])
        .execute()
    },
  }
}
