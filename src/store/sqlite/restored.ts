import { existsSync } from 'node:fs'
import { type Kysely, sql } from 'kysely'
import { LatchkeyError } from '../../errors.js'
import { startChangeLogEpoch } from '../changes.js'
import { forgetMessages } from '../messages.js'
import { executedMigrations, migrate } from '../migrate.js'
import type { Database } from '../schema.js'
import { setSyncPaused } from '../sync-state.js'
import { hasStrayLog } from './connection.js'
import { openDatabase } from './dialect.js'

export interface MadeReady {
  /** The schema steps that the backup lacked. */
  readonly migrated: readonly string[]
  /** How many memberships are as the replaced database knew them; null: there was none, or it could not be read. */
  readonly membershipsKept: number | null
}

/**
 * Makes every change by which a restored store must differ from its backup.
 * @param part a copy of the backup
 * @param replaced the database whose place it is to take, which nobody has open
 * @throws {LatchkeyError} `not_a_backup`, `schema_too_new`
 */
export async function makeReady(
  part: string,
  backup: string,
  replaced: string,
  now: number,
): Promise<MadeReady> {
  const db = openDatabase(part, { readOnly: false })
  try {
    if ((await executedMigrations(db)).length === 0) {
      throw new LatchkeyError('not_a_backup', `${backup} is a database of something else.`)
    }
    // Latchkey makes none: in a backup that somebody changed they would act on what is stored.
    const acting = await sql`select 1 from sqlite_master where type in ('trigger', 'view')`.execute(db)
    if (acting.rows.length > 0) {
      throw new LatchkeyError(
        'not_a_backup',
        `${backup} has triggers or views: take a backup that nobody changed.`,
      )
    }
    const migrated = await migrate(db)
    await db.transaction().execute(async (trx) => {
      await startChangeLogEpoch(trx)
      // Roles and groups may be newer than the backup: nothing is taken away before somebody has looked.
      await setSyncPaused(trx, true, now)
      // They may have been sent since, and newer ones after them, which they would contradict.
      await forgetMessages(trx)
    })
    const isReadable = existsSync(replaced) && !hasStrayLog(replaced)
    return { migrated, membershipsKept: isReadable ? await takeOverMemberships(db, replaced) : null }
  } finally {
    await db.destroy()
  }
}

/** Whom Latchkey let in where, where groups have gone, and bans that it still has to lift. */
const TABLES = ['memberships', 'moved_groups', 'owed_unbans']

/**
 * Takes over from the replaced database what it knows of roles and groups. The backup is too old to know whom Latchkey
 * let in since, and would leave all of them in as if staff had let them in. What they should have is worked out again,
 * from access as the backup has it.
 * @returns null where that database can't be read, or is of another schema: that must not keep the backup from taking
 * its place
 */
async function takeOverMemberships(db: Kysely<Database>, replaced: string): Promise<number | null> {
  return db.connection().execute(async (connection) => {
    try {
      await sql`attach database ${replaced} as replaced`.execute(connection)
    } catch {
      return null
    }
    try {
      return await connection.transaction().execute(async (trx) => {
        const alike = await sql`select 1 from replaced.sqlite_master as old
          join main.sqlite_master as new on old.name = new.name and old.sql = new.sql
          where old.name in (${sql.join(TABLES)})`.execute(trx)
        if (alike.rows.length < TABLES.length) return null
        for (const name of TABLES) {
          await sql`delete from main.${sql.ref(name)}`.execute(trx)
          await sql`insert into main.${sql.ref(name)} select * from replaced.${sql.ref(name)}`.execute(trx)
        }
        await sql`insert into sync_marks (environment, customer_id) select distinct environment, customer_id
          from main.memberships`.execute(trx)
        const { rows } = await sql<{ n: number }>`select count(*) as n from main.memberships`.execute(trx)
        return rows[0]?.n ?? 0
      })
    } catch {
      return null
    } finally {
      await sql`detach database replaced`.execute(connection)
    }
  })
}
