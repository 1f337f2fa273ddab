import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { connect } from 'node:net'
import type { Logger } from 'pino'
import type { Config } from '../config/schema.js'
import { MAX_SOCKET_PATH_BYTES } from '../handlers/api-key.js'
import type { Readiness } from '../handlers/health.js'
import { newestBackupAt } from '../operations/backup-folder.js'
import type { SyncState } from '../operations/metrics.js'
import { erasureListOf, readErasureList } from '../people/erasure-list.js'
import type { ShownState } from '../sync/membership.js'
import { type Outage, outageWords } from '../sync/outages.js'

/* Notes for the operator of a daemon: in the log at its start, then in `/readyz`. */

export interface OpenedStore {
  readonly file: string
  readonly isNew: boolean
}

const NOT_THE_FIRST =
  'created an empty database where one existed before; if this is unexpected, stop the daemon and restore a backup ' +
  '(latchkey restore)'

/** Logs anything unusual about the opened store, which would otherwise be noticed too late. */
export function logStoreState(
  { file, isNew }: OpenedStore,
  { backup }: Pick<Config, 'backup'>,
  now: number,
  log: Logger,
): void {
  const list = erasureListOf(file)
  const unreadable = readErasureList(list)?.unreadable ?? 0
  if (unreadable > 0)
    log.warn(
      { file: list, lines: unreadable },
      'lines of the list of erasures can’t be read: replace the list with a good copy',
    )
  if (!isNew) return
  const backedUpAt = backup === null ? null : backedUpBy(backup.folder, now)
  if (backedUpAt !== null || existsSync(list)) {
    log.warn({ file, newestBackup: backedUpAt === null ? null : new Date(backedUpAt) }, NOT_THE_FIRST)
  } else log.info({ file }, 'created a new database')
}

/** Null also if the folder can't be read: the first backup reports that. */
function backedUpBy(folder: string, now: number): number | null {
  try {
    return newestBackupAt(folder, now)
  } catch {
    return null
  }
}

/** Null where there can be none, which must not stop the start: every system limits the length of its path. */
export async function usableSocket(file: string, log: Logger): Promise<string | null> {
  if (Buffer.byteLength(file) > MAX_SOCKET_PATH_BYTES) {
    log.warn({ file }, 'the path is too long for a local socket: commands need --url')
    return null
  }
  if (!(await isAnswered(file))) return file
  log.warn(
    { file },
    'another daemon uses this local socket: commands reach that one; use --url to reach this one',
  )
  return null
}

/** Daemons on one PostgreSQL may be started in one folder. */
async function isAnswered(file: string): Promise<boolean> {
  const socket = connect(file)
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

/** The state of sync in a few numbers; null if nothing is configured. */
export function syncSummary({ paused, leads, targets, unconfirmed, webhooks, unreachable }: SyncState) {
  if (targets.length === 0 && webhooks.length === 0) return null
  const total = (state: ShownState) => targets.reduce((sum, { memberships }) => sum + memberships[state], 0)
  return {
    paused,
    leads,
    due: total('due') + total('retrying'),
    parked: total('parked'),
    unconfirmed,
    messages: webhooks.reduce((sum, { waiting }) => sum + waiting, 0),
    unreachable: unreachable.map(({ platform }) => platform),
  }
}

/** Load balancers ask often, and each test writes: those who ask within a second share one. */
const TESTED_EVERY_MS = 1_000

/** The same test, shared by all who ask within a second; false if it fails. */
export function atMostOnceASecond(canWrite: () => Promise<boolean>): () => Promise<boolean> {
  let testedAt = Number.NEGATIVE_INFINITY
  let result = Promise.resolve(false)
  return () => {
    if (performance.now() - testedAt < TESTED_EVERY_MS) return result
    testedAt = performance.now()
    result = canWrite().catch(() => false)
    return result
  }
}

/** Whether a delivery could be stored now. @param canWrite tests it by a small write */
export async function readinessOf(
  isWriterAlive: () => boolean,
  canWrite: () => Promise<boolean>,
  policyDiffers: () => Promise<boolean>,
  outages: () => Promise<readonly Outage[]>,
  configNote: string | null,
): Promise<Readiness> {
  const isWriting = isWriterAlive() && (await canWrite())
  if (!isWriterAlive()) return { ready: false, notes: ['The writer has stopped.'] }
  if (!isWriting) return { ready: false, notes: ['The store cannot be written now.'] }
  return {
    ready: true,
    notes: [
      ...(configNote === null ? [] : [configNote]),
      ...((await policyDiffers()) ? ['The configured policy is not the one in force.'] : []),
      ...(await outages()).map(outageNote),
    ],
  }
}

function outageNote({ platform, since }: Outage): string {
  return `${outageWords(platform).down} since ${new Date(since).toISOString()}; retrying.`
}
