import type { Kysely } from 'kysely'
import type { Database } from './schema.js'

/** How many events there ever were: none is ever taken out. */
export async function eventsEverStored(db: Kysely<Database>): Promise<number> {
  const row = await db
    .selectFrom('events')
    .select((eb) => eb.fn.max('seq').as('newest'))
    .executeTakeFirst()
  return Number(row?.newest ?? 0)
}
