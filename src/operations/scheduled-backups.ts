import cron from 'node-cron'
import type { Logger } from 'pino'
import type { Schedule } from './schedule.js'

const EVERY_MINUTE = '* * * * *'

/** After one that failed: soon, yet not so often that a full disk or a large database keeps the machine busy. */
const RETRY_AFTER_MS = 10 * 60_000

const SPARED =
  'these backups know more events than the database: they stay until it knows as many, or somebody removes them'

export interface ScheduledBackupsDeps {
  /** The age, in milliseconds, at which the newest backup is followed by another. */
  readonly everyMs: number
  readonly backups: {
    /** Throws where its folder can't be read, which fails the backup. */
    readonly newestAt: (now: number) => number | null
    readonly fileOf: (at: number) => string
    readonly prune: (now: number) => { readonly removed: number; readonly spared: readonly string[] }
  }
  /** Begins to write one to a file; `done` rejects where it fails or is stopped. */
  readonly startBackup: (file: string) => {
    readonly done: Promise<{ readonly file: string; readonly bytes: number }>
    readonly stop: () => void
  }
  /** Told when the newest backup was begun, at every look. */
  readonly report: (at: number) => void
  /** Epoch milliseconds. */
  readonly clock: () => number
  readonly log: Logger
}

/**
 * Makes a backup whenever the newest is old enough, and keeps the newest few. What is due is told by the files
 * themselves, so that a restart neither skips one nor makes one too many.
 */
export function startScheduledBackups(deps: ScheduledBackupsDeps): Schedule {
  const { everyMs, backups, startBackup, report, clock, log } = deps
  let stopUnderWay = (): void => {}
  let running: Promise<void> | null = null
  let isStopping = false
  let failedAt: number | null = null

  async function makeWhereDue(at: number): Promise<void> {
    try {
      const newest = backups.newestAt(at)
      if (newest !== null) report(newest)
      if (newest !== null && at - newest < everyMs) return
      const underWay = startBackup(backups.fileOf(at))
      stopUnderWay = underWay.stop
      const { file, bytes } = await underWay.done
      failedAt = null
      report(at)
      const { removed, spared } = backups.prune(at)
      log.info({ file, bytes, removed }, 'made a backup')
      if (spared.length > 0) log.warn({ files: spared }, SPARED)
    } catch (error) {
      failedAt = at
      if (!isStopping) log.error({ err: error }, 'the backup failed: it is tried again in ten minutes')
    }
  }

  function look(): void {
    const now = clock()
    const hasJustFailed = failedAt !== null && now - failedAt < RETRY_AFTER_MS
    if (running !== null || isStopping || hasJustFailed) return
    running = makeWhereDue(now).finally(() => {
      running = null
    })
  }

  look()
  const task = cron.schedule(EVERY_MINUTE, look, { name: 'back-up' })
  return {
    async stop() {
      isStopping = true
      await task.destroy()
      stopUnderWay()
      await running
    },
  }
}
