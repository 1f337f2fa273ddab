import { randomBytes } from 'node:crypto'
import type { Kysely, Transaction } from 'kysely'
import { LatchkeyError } from '../errors.js'
import type { Database } from './schema.js'
import { getSetting, setSetting } from './settings.js'

const SETTING = 'change_log_epoch'

/** Of a store that was never restored, and was made before epochs were. */
const FIRST_EPOCH = '0'

/**
 * Which change log the numbers count in. A restored store gives numbers again that were given before the restore, to
 * other changes: the epoch tells the two apart.
 */
export async function changeLogEpoch(db: Kysely<Database>): Promise<string> {
  return (await getSetting(db, SETTING)) ?? FIRST_EPOCH
}

/** From here on every cursor that was told before is unknown. */
export async function startChangeLogEpoch(trx: Transaction<Database>): Promise<void> {
  await setSetting(trx, SETTING, randomBytes(6).toString('hex'))
}

/** A place in the change log as it is told: opaque to whoever keeps it. */
export function formatCursor(epoch: string, number: number): string {
  return `${epoch}.${number}`
}

/**
 * The number in a cursor that was told in this epoch.
 * @throws {LatchkeyError} `cursor_reset`
 */
export function parseCursor(epoch: string, cursor: string): number {
  const [, told, digits] = /^(\w+)\.(\d{1,15})$/.exec(cursor) ?? []
  if (told === epoch && digits !== undefined) return Number(digits)
  throw new LatchkeyError('cursor_reset', 'The cursor is not one of this change log: begin anew.')
}
