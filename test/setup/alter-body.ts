import type { Kysely } from 'kysely'
import { saveRedacted } from '../../src/store/erasures.js'
import type { Database } from '../../src/store/schema.js'
import { openDatabase } from '../../src/store/sqlite/dialect.js'
import { eventInForm } from '../../src/store/stored-form.js'

/** Changes the bytes of an event that a store holds, and nothing else of it: as a disk or a hand would. */
export async function alterBody(
  db: Kysely<Database>,
  eventId: string,
  body: string | Buffer | null,
  table: 'events' | 'event_conflicts' = 'events',
): Promise<void> {
  const { numUpdatedRows } = await db
    .updateTable(table)
    .set({ body: body === null ? null : Buffer.from(body) })
    .where('event_id', '=', eventId)
    .executeTakeFirstOrThrow()
  if (numUpdatedRows !== 1n) throw new Error(`there is not one body of ${eventId} to alter`)
}

/** The same of a store that nobody has open. */
export function alterStopped(file: string, eventId: string, body: string): Promise<void> {
  return onStopped(file, (db) => alterBody(db, eventId, body))
}

/** Has such a store hold something else as what an erasure has left of an event's body. */
export function rewriteStopped(file: string, eventId: string, left: string): Promise<void> {
  return onStopped(file, (db) =>
    db.transaction().execute(async (trx) => {
      const [row] = await trx.selectFrom('events').selectAll().where('event_id', '=', eventId).execute()
      if (row === undefined) throw new Error(`there is no ${eventId}`)
      const event = row.normalized === null ? null : eventInForm(row.normalized, eventId)
      await saveRedacted(
        trx,
        row.seq,
        { body: Buffer.from(left), removed: 'redacted', event },
        row.received_at,
      )
    }),
  )
}

async function onStopped(file: string, change: (db: Kysely<Database>) => Promise<void>): Promise<void> {
  const db = openDatabase(file, { readOnly: false })
  try {
    await change(db)
  } finally {
    await db.destroy()
  }
}
