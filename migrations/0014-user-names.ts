import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import { storedLookup } from './lookup-value.js'

/** Bounds memory. */
const CHUNK = 1_000
const NAMES = ['communityUsername', 'messengerUsername']

interface Row {
  readonly environment: string
  readonly customer_id: string
  readonly facts: string
}

/** Finds customers by their names on the platforms, in lower case, as by their other details. */
export function userNames(): Migration {
  return {
    async up(db: Kysely<unknown>) {
      let after: Pick<Row, 'environment' | 'customer_id'> | undefined = { environment: '', customer_id: '' }
      while (after !== undefined) {
        const { rows } = await sql<Row>`
          select environment, customer_id, facts from customers
          where (environment, customer_id) > (${after.environment}, ${after.customer_id})
          order by environment, customer_id limit ${CHUNK}`.execute(db)
        const found = rows.flatMap((row) => {
          const facts: Readonly<Record<string, { readonly value: string }>> = JSON.parse(row.facts)
          return NAMES.flatMap((name) => {
            const value = facts[name]?.value.toLowerCase()
            return value === undefined ? [] : [[row.environment, name, storedLookup(value), row.customer_id]]
          })
        })
        if (found.length > 0)
          await sql`insert into customer_lookups (environment, name, value, customer_id)
            values ${sql.join(found.map((one) => sql`(${sql.join(one)})`))} on conflict do nothing`.execute(
            db,
          )
        after = rows.at(-1)
      }
    },
  }
}
