import { Worker } from 'node:worker_threads'
import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import { failureText, LatchkeyError } from '../errors.js'
import { threadFile } from '../package-file.js'
import type { Backup } from '../store/sqlite/copy.js'
import { emptyPartOf, removePartOf } from '../store/sqlite/file.js'
import { backupFileAt, newestBackupAt, pruneBackups } from './backup-folder.js'
import { createSchedule } from './cron.js'
import { createBackupMetrics } from './metrics.js'
import { every, MINUTE_MS, type Schedule } from './schedule.js'

/** The wait after a failure: short, but not so short that a full disk or a large database keeps the machine busy. */
const RETRY_AFTER_MS = 10 * 60_000

export interface BackupRequest {
  readonly file: string
  readonly target: string
}

/** The one message of the backup thread. */
export type BackupReply = { readonly backup: Backup } | { readonly reason: string }

interface BackupUnderWay {
  /** Rejects with `backup_failed` if the backup fails, or is stopped. */
  readonly done: Promise<Backup>
  stop(): void
}

/** When the next backup is due: at an age of the newest, in milliseconds, or at times. */
export type BackupTimes =
  | { readonly everyMs: number; readonly schedule?: never }
  | { readonly schedule: string; readonly timezone: string; readonly everyMs?: never }

export type ScheduledBackupsDeps = BackupTimes & {
  readonly folder: string
  /** How many backups are kept. */
  readonly keep: number
  /** Begins a backup to that file. */
  readonly startBackup: (target: string) => BackupUnderWay
  readonly registry: Registry
  /** Epoch milliseconds. */
  readonly clock: () => number
  readonly log: Logger
}

/**
 * Makes a backup when one is due, and keeps the newest few. The files themselves show what is due, so a restart neither
 * skips a backup nor makes an extra one.
 */
export function startScheduledBackups(deps: ScheduledBackupsDeps): Schedule {
  const { folder, keep, startBackup, registry, clock, log } = deps
  const metrics = createBackupMetrics(registry)
  const failed = 'the backup failed; retrying in ten minutes'

  async function make(stopping: AbortSignal): Promise<void> {
    const now = clock()
    const underWay = startBackup(backupFileAt(folder, now))
    stopping.addEventListener('abort', underWay.stop)
    const { file, bytes } = await underWay.done.finally(() =>
      stopping.removeEventListener('abort', underWay.stop),
    )
    metrics.made(now)
    log.info({ file, bytes, removed: pruneBackups(folder, keep, now) }, 'created a backup')
  }

  function newestAt(): number | null {
    const newest = newestBackupAt(folder, clock())
    if (newest !== null) metrics.made(newest)
    return newest
  }

  /** Also counts a failure, unless the daemon stops. */
  async function counted<T>(stopping: AbortSignal | null, work: () => T | Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      if (!stopping?.aborted) metrics.failed()
      throw error
    }
  }

  if (deps.schedule !== undefined) {
    return createSchedule({
      expression: deps.schedule,
      timezone: deps.timezone,
      run: (stopping) => counted(stopping, () => make(stopping)),
      lastRanAt: () => counted(null, newestAt),
      failed,
      retryAfterMs: RETRY_AFTER_MS,
      clock,
      log,
    })
  }

  const { everyMs } = deps
  let failedAt: number | null = null
  async function makeWhereDue(stopping: AbortSignal): Promise<void> {
    const now = clock()
    if (failedAt !== null && now - failedAt < RETRY_AFTER_MS) return
    try {
      const newest = newestAt()
      if (newest !== null && now - newest < everyMs) return
      await make(stopping)
      failedAt = null
    } catch (error) {
      failedAt = now
      if (stopping.aborted) return
      metrics.failed()
      throw error
    }
  }
  return every(MINUTE_MS, log, { run: makeWhereDue, failed })
}

/** Makes a backup in a separate thread. Never overwrites. */
export function startBackup(file: string, target: string): BackupUnderWay {
  const request: BackupRequest = { file, target }
  const thread = new Worker(threadFile('operations/backup-thread'), { workerData: request })
  const done = new Promise<Backup>((resolve, reject) => {
    let reply: BackupReply = { reason: 'The backup thread ended before the backup was complete.' }
    thread.on('message', (message: BackupReply) => {
      reply = message
    })
    thread.on('error', (error) => {
      reply = { reason: failureText(error) }
    })
    thread.on('exit', () => {
      removePartOf(target)
      if ('backup' in reply) resolve(reply.backup)
      else reject(new LatchkeyError('backup_failed', reply.reason))
    })
  })
  const stop = (): void => {
    void thread.terminate()
    emptyPartOf(target)
  }
  return { done, stop }
}
