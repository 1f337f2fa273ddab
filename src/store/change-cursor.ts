import { randomBytes } from 'node:crypto'
import type { Kysely, Transaction } from 'kysely'
import type { Database } from './schema.js'
import { getSetting, setSetting } from './settings.js'

export const EPOCH_SETTING = 'change_log_epoch'

/** Of a store that no daemon has opened yet. */
export const NO_EPOCH = '0'

/**
 * Which change log the numbers count in. A restored store gives numbers again that were given before the restore, to
 * other changes: the epoch tells the two apart.
 */
export async function changeLogEpoch(db: Kysely<Database>): Promise<string> {
  return (await getSetting(db, EPOCH_SETTING)) ?? NO_EPOCH
}

/** From here on every cursor that was told before is unknown. */
export async function startChangeLogEpoch(trx: Transaction<Database>): Promise<void> {
  await setSetting(trx, EPOCH_SETTING, randomBytes(6).toString('hex'))
}

/** Sees to it that the store has one: a database that was made anew counts from the beginning, too. */
export function settleChangeLogEpoch(db: Kysely<Database>): Promise<void> {
  return db.transaction().execute(async (trx) => {
    if ((await getSetting(trx, EPOCH_SETTING)) === null) await startChangeLogEpoch(trx)
  })
}

/** A place in the change log as it is told: opaque to whoever keeps it. */
export function formatCursor(epoch: string, number: number): string {
  return `${epoch}.${number}`
}

/** The number in a cursor; null: it was not told in this epoch. */
export function numberIn(epoch: string, cursor: string): number | null {
  const [, told, digits] = /^(\w+)\.(\d{1,15})$/.exec(cursor) ?? []
  return told === epoch && digits !== undefined ? Number(digits) : null
}
