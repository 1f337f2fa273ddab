import type { Kysely, Transaction } from 'kysely'
import type { Database } from './schema.js'
import { getSetting, removeSetting, setSetting } from './settings.js'

/** How far sync has taken in the change log, as `formatCursor` writes it. */
export const CURSOR_SETTING = 'sync_cursor'
/** Which products and targets what is desired was worked out for. */
const TARGETS_SETTING = 'sync_targets'
const PAUSED_SETTING = 'sync_paused'
const PAUSED_AT_SETTING = 'sync_paused_at'
const SWEPT_SETTING = 'sync_swept_at'

export interface SyncSettings {
  readonly cursor: string | null
  readonly targets: string | null
  readonly paused: boolean
  /** When the newest sweep began, in epoch milliseconds. */
  readonly sweptAt: number | null
}

export async function loadSyncSettings(db: Kysely<Database>): Promise<SyncSettings> {
  const sweptAt = await getSetting(db, SWEPT_SETTING)
  return {
    cursor: await getSetting(db, CURSOR_SETTING),
    targets: await getSetting(db, TARGETS_SETTING),
    paused: await isSyncPaused(db),
    sweptAt: sweptAt === null ? null : Number(sweptAt),
  }
}

export async function isSyncPaused(db: Kysely<Database>): Promise<boolean> {
  return (await getSetting(db, PAUSED_SETTING)) === '1'
}

/** No call to a platform is begun while it is paused. */
export async function setSyncPaused(trx: Transaction<Database>, paused: boolean, now: number): Promise<void> {
  if (!paused) await removeSetting(trx, PAUSED_AT_SETTING)
  else if (!(await isSyncPaused(trx))) await setSetting(trx, PAUSED_AT_SETTING, String(now))
  await setSetting(trx, PAUSED_SETTING, paused ? '1' : '0')
}

/** Since when it is paused, in epoch milliseconds; null: it is not, or an older version paused it. */
export async function loadPausedAt(db: Kysely<Database>): Promise<number | null> {
  const at = await getSetting(db, PAUSED_AT_SETTING)
  return at === null ? null : Number(at)
}

/** @param at when it began, in epoch milliseconds */
export function setSweptAt(trx: Transaction<Database>, at: number): Promise<void> {
  return setSetting(trx, SWEPT_SETTING, String(at))
}

/** Everybody is marked who has an account: from here on the change log tells of the rest. */
export async function settleSyncTargets(
  trx: Transaction<Database>,
  { targets, cursor }: { readonly targets: string; readonly cursor: string },
): Promise<void> {
  await setSetting(trx, TARGETS_SETTING, targets)
  await setSetting(trx, CURSOR_SETTING, cursor)
}
