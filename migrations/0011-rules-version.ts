import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'

/** A store without events needs no rebuild under the rules of this version; one with events was folded by older ones. */
export function rulesVersion(): Migration {
  return {
    async up(db: Kysely<unknown>) {
      await sql`insert into settings (key, value) select 'rules_version', '2'
        where not exists (select 1 from events)`.execute(db)
    },
  }
}
