import { noteAskedRecord } from '../store/awaited-records.js'
import { forgetBackfill, saveBackfill, stopBackfill } from '../store/backfill.js'
import { engineOf } from '../store/engine.js'
import { keepJoinLink, keepMovedGroup, setUnbanOwed, takeJoinLink } from '../store/join-links.js'
import {
  findMemberships,
  forgetMemberships,
  loadMemberships,
  MAX_PER_TRANSACTION,
  type MembershipFilter,
  type MembershipKey,
  membershipKey,
  type RetryFilter,
  saveMemberships,
} from '../store/memberships.js'
import { expireMessages } from '../store/message-log.js'
import { queueMessages, recordOutcomes, replayMessages, retryMessages } from '../store/message-queue.js'
import { forgetJobRecords, saveJobRecord, stopJob } from '../store/recompute.js'
import type { Tx } from '../store/schema.js'
import { markLinkedCustomers, saveSyncSettings, setSyncPaused, unmarkForSync } from '../store/sync-state.js'
import { type MembershipEvent, type NewDesire, neverDesired, transition } from './membership.js'

/** What a call, an operator or a change of access does to one membership. */
export interface MembershipStep {
  readonly key: MembershipKey
  readonly event: MembershipEvent
}

/** @param membership or all that is known of it: a step is plain data for another thread */
export function stepOf(membership: MembershipKey, event: MembershipEvent): MembershipStep {
  const { environment, target, accountId } = membership
  return { key: { environment, target, accountId }, event }
}

/**
 * Saves steps of memberships; each membership occurs at most once.
 * @returns for each step whether it changed anything; if not, its call must not begin
 */
export async function stepMemberships(trx: Tx, steps: readonly MembershipStep[], now: number) {
  const stored = await loadMemberships(
    trx,
    steps.map(({ key }) => key),
  )
  const after = steps.map(({ key, event }) => {
    const first = event.kind === 'desired' ? neverDesired(key, event, now) : null
    const membership = stored.get(membershipKey(key)) ?? first
    return membership && transition(membership, event, now)
  })
  await saveMemberships(
    trx,
    after.filter((one) => one !== null),
  )
  return after.map((one) => one !== null)
}

export interface Desired {
  /** Each membership at most once. */
  readonly desires: readonly NewDesire[]
  /** They include the change log up to here (`formatCursor`). */
  readonly cursor: string
  /** They include these marks (`loadSyncMarks`). */
  readonly marks: readonly number[]
}

/** Saves the desired state, and marks the changes and marks that caused it as done. */
export async function saveDesires(trx: Tx, { desires, cursor, marks }: Desired, now: number) {
  const steps = desires.map((key) => ({ key, event: { kind: 'desired', ...key } as const }))
  await stepMemberships(trx, steps, now)
  await unmarkForSync(trx, marks)
  await saveSyncSettings(trx, { cursor })
}

/**
 * Makes failed memberships due now; `healing`: only those that sweeps retry.
 * @returns whether there may be more
 */
async function retryMemberships(
  trx: Tx,
  { customerId, healing, ...filter }: RetryFilter & { readonly healing?: true },
  now: number,
): Promise<boolean> {
  const failed: MembershipFilter = {
    ...filter,
    hasFailed: true,
    ...(customerId !== undefined && { customerIds: [customerId] }),
    ...(healing && { states: ['waiting', 'stuck'] }),
  }
  const found = await findMemberships(trx, failed, MAX_PER_TRANSACTION)
  const after = found.flatMap((one) => transition(one, { kind: 'retry' }, now) ?? [])
  await saveMemberships(trx, after)
  return found.length === MAX_PER_TRANSACTION
}

/** @param now epoch milliseconds */
type SyncWriteOf<Change, Answer> = (trx: Tx, change: Change, now: number) => Promise<Answer>

/**
 * Every write of sync, and of what is known of jobs, by name, each one transaction. Changes are plain data, since they are sent to
 * the writer thread.
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
  saveBackfill,
  stopBackfill,
  forgetBackfill,
  noteAskedRecord,
} as const satisfies Record<string, SyncWriteOf<never, unknown>>

export type SyncWriteName = keyof typeof SYNC_WRITES
export type SyncChange<Name extends SyncWriteName> = Parameters<(typeof SYNC_WRITES)[Name]>[1]
export type SyncAnswer<Name extends SyncWriteName> = Awaited<ReturnType<(typeof SYNC_WRITES)[Name]>>

export type WriteSync = <Name extends SyncWriteName>(
  name: Name,
  change: SyncChange<Name>,
) => Promise<SyncAnswer<Name>>

/** What is written one after the other, by all processes together: the lock that each write has. */
const LOCKS: Readonly<Record<SyncWriteName, 'sync' | 'messages' | 'jobs' | 'backfills'>> = {
  saveDesires: 'sync',
  stepMemberships: 'sync',
  retryMemberships: 'sync',
  forgetMemberships: 'sync',
  markLinkedCustomers: 'sync',
  saveSyncSettings: 'sync',
  setSyncPaused: 'sync',
  keepJoinLink: 'sync',
  takeJoinLink: 'sync',
  keepMovedGroup: 'sync',
  setUnbanOwed: 'sync',
  queueMessages: 'messages',
  recordOutcomes: 'messages',
  retryMessages: 'messages',
  replayMessages: 'messages',
  expireMessages: 'messages',
  saveJobRecord: 'jobs',
  stopJob: 'jobs',
  forgetJobRecords: 'jobs',
  saveBackfill: 'backfills',
  stopBackfill: 'backfills',
  forgetBackfill: 'backfills',
  noteAskedRecord: 'backfills',
}

/** In a transaction beside deliveries, which write nothing of it. */
export async function performSyncWrite<Name extends SyncWriteName>(
  trx: Tx,
  name: Name,
  change: SyncChange<Name>,
  now: number,
): Promise<SyncAnswer<Name>> {
  await engineOf(trx).lock(trx, [LOCKS[name]])
  // Each name has its own types, which TypeScript can't follow through a lookup.
  const write = SYNC_WRITES[name] as SyncWriteOf<unknown, unknown>
  return write(trx, change, now) as Promise<SyncAnswer<Name>>
}
