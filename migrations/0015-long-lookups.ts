import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import { storedLookup } from './lookup-value.js'

/** Bounds memory. */
const CHUNK = 1_000
/** In characters, of which each has at most two of the units that a stored value is limited by. */
const SHORT = 127

type Row = Readonly<Record<'environment' | 'name' | 'value' | 'customer_id', string>>

/** Shortens what SQLite, whose indexes have no limit, has in full: names on the platforms are short from the beginning. */
export function longLookups(): Migration {
  return {
    async up(db: Kysely<unknown>) {
      let rows: readonly Row[]
      let after = ['', '', '', '']
      do {
        rows = await nextLong(db, after)
        for (const { environment, name, value, customer_id: customerId } of rows) {
          after = [environment, name, value, customerId]
          const stored = storedLookup(value)
          if (stored === value) continue
          await sql`insert into customer_lookups (environment, name, value, customer_id)
            values (${environment}, ${name}, ${stored}, ${customerId}) on conflict do nothing`.execute(db)
          await sql`delete from customer_lookups where environment = ${environment} and name = ${name}
            and value = ${value} and customer_id = ${customerId}`.execute(db)
        }
      } while (rows.length === CHUNK)
    },
  }
}

async function nextLong(db: Kysely<unknown>, after: readonly string[]): Promise<readonly Row[]> {
  const { rows } = await sql<Row>`
    select environment, name, value, customer_id from customer_lookups
    where (environment, name, value, customer_id) > (${sql.join(after)}) and length(value) > ${SHORT}
      and name not in ('communityUsername', 'messengerUsername')
    order by environment, name, value, customer_id limit ${CHUNK}`.execute(db)
  return rows
}
