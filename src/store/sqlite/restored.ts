import { existsSync } from 'node:fs'
import { sql } from 'kysely'
import { LatchkeyError } from '../../errors.js'
import type { Environment } from '../../provider/event.js'
import { startChangeLogEpoch } from '../changes.js'
import { compareBodies } from '../event-questions.js'
import { forgetMessages } from '../message-log.js'
import { executedMigrations, migrate } from '../migrate.js'
import type { Db } from '../schema.js'
import { setSyncPaused } from '../sync-state.js'
import { hasStrayLog } from './connection.js'
import { openDatabase } from './dialect.js'

export interface MadeReady {
  /** The schema steps that the backup lacked. */
  readonly migrated: readonly string[]
  /** How many bodies in the backup are not what was received. */
  readonly altered: number
  /** How many memberships were taken from the replaced database; null: there was none, or it was unreadable. */
  readonly membershipsKept: number | null
  /** How many events only the replaced database has, by environment; null as before. */
  readonly eventsLeft: Partial<Readonly<Record<Environment, number>>> | null
}

/**
 * Makes the changes that a restored store needs compared with its backup.
 * @param part a copy of the backup
 * @param replaced the database that it will replace, which nobody has open
 * @param options `acceptAltered`: whether bodies may be other than what was received
 * @throws {LatchkeyError} `not_a_backup`, `schema_too_new`, `backup_damaged`
 */
export async function makeReady(
  part: string,
  backup: string,
  replaced: string,
  { now, acceptAltered }: { readonly now: number; readonly acceptAltered: boolean },
): Promise<MadeReady> {
  const db = openDatabase(part, { readOnly: false })
  try {
    if ((await executedMigrations(db)).length === 0) {
      throw new LatchkeyError('not_a_backup', `${backup} is not a Latchkey database.`)
    }
    // Latchkey creates none: in a manipulated backup they would act on stored data.
    const acting = await sql`select 1 from sqlite_master where type in ('trigger', 'view')`.execute(db)
    if (acting.rows.length > 0) {
      throw new LatchkeyError(
        'not_a_backup',
        `${backup} has triggers or views: use a backup that nobody changed.`,
      )
    }
    const migrated = await migrate(db)
    const { read, altered, first } = await compareBodies(db)
    if (altered > 0 && !acceptAltered) {
      const found = `${altered} of its ${read} event bodies were altered; the first is that of ${first}`
      const todo = 'Choose another backup; use --force to restore this one anyway.'
      throw new LatchkeyError('backup_damaged', `${backup} is damaged: ${found}. ${todo}`)
    }
    await db.transaction().execute(async (trx) => {
      await startChangeLogEpoch(trx)
      // Roles and groups may be newer than the backup: nothing is removed before somebody has checked.
      await setSyncPaused(trx, true, now)
      // They may have been sent since, followed by newer ones, which they would contradict.
      await forgetMessages(trx)
    })
    const isReadable = existsSync(replaced) && !hasStrayLog(replaced)
    const taken = isReadable ? await takeFromReplaced(db, replaced) : null
    return { migrated, altered, ...(taken ?? { membershipsKept: null, eventsLeft: null }) }
  } finally {
    await db.destroy()
  }
}

/** Accounts that Latchkey let in, new ids of groups, and bans that it still has to lift. */
const TABLES = ['memberships', 'moved_groups', 'owed_unbans']

/**
 * Takes the state of roles and groups from the replaced database, and counts the events that only it has. The backup
 * does not know whom Latchkey let in since, and would treat all of them as let in by staff. The desired state is
 * computed again, from access in the backup.
 * @returns null if that database is unreadable, or has another schema: this must not prevent the restore
 */
async function takeFromReplaced(db: Db, replaced: string) {
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
        const { rows: kept } = await sql<{ n: number }>`
          select count(*) as n from main.memberships`.execute(trx)
        const { rows: left } = await sql<{ environment: Environment; n: number }>`
          select environment, count(*) as n from replaced.events as old where not exists (
            select 1 from main.events as new
            where new.environment = old.environment and new.event_id = old.event_id)
          group by environment`.execute(trx)
        const counts = left.map((one) => [one.environment, one.n])
        return { membershipsKept: kept[0]?.n ?? 0, eventsLeft: Object.fromEntries(counts) }
      })
    } catch {
      return null
    } finally {
      await sql`detach database replaced`.execute(connection)
    }
  })
}
