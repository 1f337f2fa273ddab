import { createHash } from 'node:crypto'
import { openDatabase } from '../../src/store/sqlite/dialect.js'

/** Bytes that were delivered, and the ones that are to stand in their place. */
export interface Misreading {
  readonly unreadable: string
  readonly body: string
}

/** Makes a stopped store hold other bytes than it was given: as if a program could not read these, when they came. */
export async function misread(file: string, misreadings: readonly Misreading[]): Promise<void> {
  const db = openDatabase(file, { readOnly: false })
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
