import type { Kysely } from 'kysely'
import { expect } from 'vitest'
import type { Receipt } from '../../src/ingest/delivery.js'
import type { Database } from '../../src/store/schema.js'
import { eventually } from '../setup/eventually.js'
import { openStoreAt } from '../world.js'
import { warnings } from './observed.js'
import { ask, type RunningDaemon, send } from './running-daemon.js'

/**
 * Writes to the daemon's database beside it, as another process would: again from the start while the daemon itself
 * holds the database.
 */
export async function writeBeside<T>(
  daemon: RunningDaemon,
  write: (db: Kysely<Database>) => Promise<T>,
): Promise<T> {
  // Both share this thread, where waiting for a lock would stop its holder: what the daemon writes at its
  // start must be over, and is once this has taken its turn.
  await ask(daemon, '/readyz')
  const db = await openStoreAt(daemon.databaseFile, { readOnly: false })
  try {
    for (;;) {
      try {
        return await write(db)
      } catch (error) {
        if ((error as { readonly code?: unknown }).code !== 'SQLITE_BUSY') throw error
        await new Promise(setImmediate)
      }
    }
  } finally {
    await db.destroy()
  }
}

/** The lock of each engine, held by another for too long. */
const BUSY = /^(SQLITE_BUSY|55P03)$/

export interface Answer {
  readonly status: number
  readonly body: Partial<Receipt> & { readonly code?: string }
}

/**
 * Sends these while another holds the database. The daemon tries again with the first that came, alone, and
 * what comes meanwhile gathers into one batch.
 */
export async function sendGathered(daemon: RunningDaemon, bodies: readonly string[]): Promise<Answer[]> {
  const deliver = async (body: string): Promise<Answer> => {
    const answer = await send(daemon, body)
    return { status: answer.status, body: (await answer.json()) as Answer['body'] }
  }
  const { sent } = await writeBeside(daemon, (db) =>
    db.transaction().execute(async () => {
      const sent = bodies.map(deliver)
      await eventually(() =>
        expect(warnings(daemon)).toMatchObject([{ err: { code: expect.stringMatching(BUSY) } }]),
      )
      // Connections are served in their order: after these, all that was sent before has come in.
      for (const _round of [1, 2, 3]) await ask(daemon, '/healthz')
      return { sent }
    }),
  )
  return Promise.all(sent)
}
