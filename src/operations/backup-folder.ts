import { existsSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { removePartOf } from '../store/sqlite/file.js'

/*
 * The folder of scheduled backups. File names contain the start time of the backup; other files in it are left alone.
 * The system's own errors, as for an unreadable folder, pass through.
 */

const NAME = /^latchkey-(.+)\.db$/
const UNFINISHED = /^(latchkey-.+\.db)\.latchkey\.part/
const TIME = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d\.\d{3}Z)$/

/** An instant as part of a file name that sorts by time: `20260301T120000.500Z`. */
export function timeInName(instant: number): string {
  return new Date(instant).toISOString().replaceAll(/[-:]/g, '')
}

/** The path of the backup begun at that time (epoch milliseconds). */
export function backupFileAt(folder: string, at: number): string {
  return join(folder, `latchkey-${timeInName(at)}.db`)
}

/**
 * When the newest backup was begun; null if there is none. Skips backups from the future: the clock was set back, and
 * their age is unknown.
 */
export function newestBackupAt(folder: string, now: number): number | null {
  return timesIn(folder).find((at) => at <= now) ?? null
}

/** Removes all but the newest few, those from the future first, and unfinished ones. @returns how many it removed */
export function pruneBackups(folder: string, keep: number, now: number): number {
  for (const name of namesIn(folder)) {
    const [, unfinished] = UNFINISHED.exec(name) ?? []
    if (unfinished !== undefined) removePartOf(join(folder, unfinished))
  }
  const times = timesIn(folder)
  const old = [...times.filter((at) => at <= now), ...times.filter((at) => at > now)].slice(keep)
  for (const at of old) rmSync(backupFileAt(folder, at))
  return old.length
}

/** Newest first. */
function timesIn(folder: string): readonly number[] {
  const times = namesIn(folder).map((name) => readTime(NAME.exec(name)?.[1] ?? ''))
  return times.filter((time) => time !== null).sort((a, b) => b - a)
}

function namesIn(folder: string): readonly string[] {
  return existsSync(folder) ? readdirSync(folder) : []
}

/** Null if the text is not such a time. */
function readTime(text: string): number | null {
  const instant = Date.parse(text.replace(TIME, '$1-$2-$3T$4:$5:$6'))
  return TIME.test(text) && !Number.isNaN(instant) ? instant : null
}
