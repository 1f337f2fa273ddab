import { type Kysely, sql } from 'kysely'
import type { Database } from '../schema.js'

/** Whom Latchkey let in where, where groups have gone, and bans that it still has to lift. */
const TABLES = ['memberships', 'moved_groups', 'owed_unbans'] as const

/**
 * Takes over from the database that a backup replaces what it knows of roles and groups. The backup is too old to know
 * whom Latchkey let in since, and would leave all of them in as if staff had let them in. What they should have is worked
 * out again, from access as the backup has it.
 * @param replaced a file that nobody has open
 * @returns how many memberships that is; null where that database can't be read, or is of another schema
 */
export async function takeOverMemberships(db: Kysely<Database>, replaced: string): Promise<number | null> {
  return db.connection().execute(async (connection) => {
    try {
      await sql`attach database ${replaced} as replaced`.execute(connection)
    } catch {
      return null
    }
    try {
      return await connection.transaction().execute(async (trx) => {
        for (const name of TABLES) {
          if (!(await isAlike(trx, name))) return null
          const table = sql.ref(name)
          await sql`delete from main.${table}`.execute(trx)
          await sql`insert into main.${table} select * from replaced.${table}`.execute(trx)
        }
        await sql`insert into sync_marks (environment, customer_id) select distinct environment, customer_id
          from main.memberships`.execute(trx)
        const { rows } = await sql<{ n: number }>`select count(*) as n from main.memberships`.execute(trx)
        return rows[0]?.n ?? 0
      })
    } catch {
      // Whatever is wrong with the old database, it must not keep the backup from taking its place.
      return null
    } finally {
      await sql`detach database replaced`.execute(connection)
    }
  })
}

async function isAlike(db: Kysely<Database>, name: string): Promise<boolean> {
  const { rows } = await sql<{ same: number }>`select old.sql = new.sql as same
    from replaced.sqlite_master as old join main.sqlite_master as new on old.name = new.name
    where old.name = ${name}`.execute(db)
  return rows[0]?.same === 1
}
