import { keepJoinLink, keepMovedGroup, setUnbanOwed, takeJoinLink } from './join-links.js'
import { forgetMemberships, retryMemberships, saveDesires, stepMemberships } from './memberships.js'
import { expireMessages, queueMessages, recordOutcomes, replayMessages, retryMessages } from './messages.js'
import { forgetJobRecords, saveJobRecord, stopJob } from './recompute.js'
import type { Tx } from './schema.js'
import { markLinkedCustomers, saveSyncSettings, setSyncPaused } from './sync-state.js'

/** @param now epoch milliseconds */
type SyncWriteOf<Change, Answer> = (trx: Tx, change: Change, now: number) => Promise<Answer>

/**
 * Every write of sync, and of what is known of jobs, by name, each one transaction. Changes are plain data, since they are sent to the writer thread.
 */
const SYNC_WRITES = {
  saveDesires,
  stepMemberships,
  retryMemberships,
  forgetMemberships,
  markLinkedCustomers,
  saveSyncSettings,
  setSyncPaused,
  keepJoinLink,
  takeJoinLink,
  keepMovedGroup,
  setUnbanOwed,
  queueMessages,
  recordOutcomes,
  retryMessages,
  replayMessages,
  expireMessages,
  saveJobRecord,
  stopJob,
  forgetJobRecords,
} as const satisfies Record<string, SyncWriteOf<never, unknown>>

export type SyncWriteName = keyof typeof SYNC_WRITES
export type SyncChange<Name extends SyncWriteName> = Parameters<(typeof SYNC_WRITES)[Name]>[1]
export type SyncAnswer<Name extends SyncWriteName> = Awaited<ReturnType<(typeof SYNC_WRITES)[Name]>>

/** Commits one write of sync. */
export type WriteSync = <Name extends SyncWriteName>(
  name: Name,
  change: SyncChange<Name>,
) => Promise<SyncAnswer<Name>>

export function performSyncWrite<Name extends SyncWriteName>(
  trx: Tx,
  name: Name,
  change: SyncChange<Name>,
  now: number,
): Promise<SyncAnswer<Name>> {
  // Each name has its own types, which TypeScript can't follow through a lookup.
  const write = SYNC_WRITES[name] as SyncWriteOf<unknown, unknown>
  return write(trx, change, now) as Promise<SyncAnswer<Name>>
}
