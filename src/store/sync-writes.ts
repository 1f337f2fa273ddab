import type { Transaction } from 'kysely'
import { keepJoinLink, takeJoinLink } from './join-links.js'
import { forgetMemberships, retryMemberships, saveDesires, stepMemberships } from './membership-changes.js'
import { queueMessages, retryMessages, settleMessages } from './messages.js'
import type { Database } from './schema.js'
import {
  keepMovedGroup,
  markLinkedCustomers,
  oweUnban,
  setSweptAt,
  setSyncPaused,
  settleSyncTargets,
  settleUnban,
} from './sync-state.js'

/** @param now epoch milliseconds */
type SyncWriteOf<Change, Answer> = (
  trx: Transaction<Database>,
  change: Change,
  now: number,
) => Promise<Answer>

/**
 * Everything that the sync part writes, by name: one transaction each, in the thread that writes. A change is plain
 * data, since it crosses between threads.
 */
export const SYNC_WRITES = {
  saveDesires,
  stepMemberships,
  retryMemberships,
  forgetMemberships,
  markLinkedCustomers,
  settleSyncTargets,
  setSyncPaused,
  setSweptAt,
  keepJoinLink,
  takeJoinLink,
  keepMovedGroup,
  oweUnban,
  settleUnban,
  queueMessages,
  settleMessages,
  retryMessages,
} as const satisfies Record<string, SyncWriteOf<never, unknown>>

export type SyncWriteName = keyof typeof SYNC_WRITES
export type SyncChange<Name extends SyncWriteName> = Parameters<(typeof SYNC_WRITES)[Name]>[1]
export type SyncAnswer<Name extends SyncWriteName> = Awaited<ReturnType<(typeof SYNC_WRITES)[Name]>>

/** Commits one change of what the sync part keeps. */
export type WriteSync = <Name extends SyncWriteName>(
  name: Name,
  change: SyncChange<Name>,
) => Promise<SyncAnswer<Name>>

export function performSyncWrite<Name extends SyncWriteName>(
  trx: Transaction<Database>,
  name: Name,
  change: SyncChange<Name>,
  now: number,
): Promise<SyncAnswer<Name>> {
  // The table gives each name its own change and answer; no type follows them by a name that is not known yet.
  const write = SYNC_WRITES[name] as SyncWriteOf<unknown, unknown>
  return write(trx, change, now) as Promise<SyncAnswer<Name>>
}
