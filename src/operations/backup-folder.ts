import { existsSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { eventsEverStoredIn } from '../store/events-ever-stored.js'
import { removePartsOf } from '../store/sqlite/part-file.js'
import { readTimeInName, timeInName } from './time-in-name.js'

/** What is told in it is the time. */
export const BACKUP_NAME = /^latchkey-(.+)\.db$/
const BEGUN = /^(latchkey-.+\.db)\.[0-9a-f]{12}\.part/

/**
 * Where backups that are made by the clock are kept: files of one name and the time when each was begun. What the
 * system says to a folder that can't be read, or is none, passes through.
 */
export interface BackupFolder {
  /**
   * When the newest one was begun by an instant, both in epoch milliseconds; null where there is none. One from beyond
   * it says that the clock was set back: how old it is nobody knows.
   */
  newestAt(now: number): number | null
  /** Its path, of the one begun at that time. */
  fileOf(at: number): string
  /**
   * Removes all but the newest few, and what was begun and never ended. Those from beyond the instant go first. One that
   * knows more events than the newest is spared: that one is of another database, or of one that lost some.
   */
  prune(now: number): Pruned
}

export interface Pruned {
  readonly removed: number
  /** The paths of those that would have been next. */
  readonly spared: readonly string[]
}

/** `keep`: how many backups are left. Nothing else in the folder is touched. */
export function createBackupFolder(folder: string, keep: number): BackupFolder {
  const names = (): readonly string[] => (existsSync(folder) ? readdirSync(folder) : [])
  const fileOf = (at: number): string => join(folder, `latchkey-${timeInName(at)}.db`)

  function newestFirst(): readonly number[] {
    const times = names().map((name) => readTimeInName(BACKUP_NAME.exec(name)?.[1] ?? ''))
    return times.filter((time) => time !== null).sort((a, b) => b - a)
  }

  const begunBy = (now: number): readonly number[] => newestFirst().filter((at) => at <= now)

  return {
    newestAt: (now) => begunBy(now)[0] ?? null,
    fileOf,
    prune(now) {
      for (const name of names()) {
        const [, begun] = BEGUN.exec(name) ?? []
        if (begun !== undefined) removePartsOf(join(folder, begun))
      }
      const ahead = newestFirst().filter((at) => at > now)
      const inOrder = [...begunBy(now), ...ahead].map(fileOf)
      const known = eventsEverStoredIn(inOrder[0] ?? '')
      const old = inOrder.slice(keep)
      const spared = old.filter((file) => known !== null && (eventsEverStoredIn(file) ?? 0) > known)
      const removed = old.filter((file) => !spared.includes(file))
      for (const file of removed) rmSync(file)
      return { removed: removed.length, spared }
    },
  }
}
