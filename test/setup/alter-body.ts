import { createHash } from 'node:crypto'
import type { Kysely } from 'kysely'
import { saveRedacted } from '../../src/store/erasures.js'
import type { Database } from '../../src/store/schema.js'
import { eventInForm } from '../../src/store/stored-form.js'
import { openStoreAt } from '../world.js'

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

/** Has a store hold something else as what an erasure has left of an event's body. */
export async function rewriteBody(db: Kysely<Database>, eventId: string, left: string): Promise<void> {
  await db.transaction().execute(async (trx) => {
    const row = await trx
      .selectFrom('events')
      .selectAll()
      .where('event_id', '=', eventId)
      .executeTakeFirstOrThrow()
    const event = row.normalized === null ? null : eventInForm(row.normalized, eventId)
    await saveRedacted(trx, row.seq, { body: Buffer.from(left), removed: 'redacted', event }, row.received_at)
  })
}

/** Bytes that were delivered, and the ones that are to be in their place. */
export interface Misreading {
  readonly unreadable: string
  readonly body: string
}

/** Has a stopped store hold other bytes than it was given: as if a program could not read these, when they came. */
export async function misread(file: string, misreadings: readonly Misreading[]): Promise<void> {
  const db = await openStoreAt(file, { readOnly: false })
  await db.transaction().execute(async (trx) => {
    for (const { unreadable, body } of misreadings) {
      await trx
        .updateTable('events')
        .set({ body: Buffer.from(body), body_sha256: hashOf(body), event_id: `sha256:${hashOf(body)}` })
        .where('environment', '=', 'live')
        .where('event_id', '=', `sha256:${hashOf(unreadable)}`)
        .execute()
    }
  })
  await db.destroy()
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
