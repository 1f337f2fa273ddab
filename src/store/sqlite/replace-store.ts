import { existsSync, linkSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { sync } from './part-file.js'

/** What SQLite would take for a part of whatever database stands at the path. */
const LOGS = ['-wal', '-journal']

/**
 * Puts a whole database in the place of the one at `file`, which is kept under `keptAs` with the log that belongs to it.
 * Nobody else may write there meanwhile. At every moment something stands at `file`, and never beside a log of another.
 *
 * Interrupted, it leaves the old database under two names, and so no daemon opens it without its log; the next one
 * goes on from there.
 *
 * @returns where the old one is; null where there was none
 */
export function replaceStore(file: string, whole: string, keptAs: string): string | null {
  const existed = existsSync(file)
  const begun = existed ? keptBefore(file) : null
  const kept = begun ?? keptAs
  if (existed && begun === null) linkSync(file, kept)
  for (const log of LOGS) moveLog(`${file}${log}`, `${kept}${log}`)
  rmSync(`${file}-shm`, { force: true })
  // The log must be away on the disk too, before another database stands there.
  sync(dirname(file))
  renameSync(whole, file)
  sync(dirname(file))
  return existed ? kept : null
}

/** The second name that an interrupted replacing has given the database, with its log; null: it has none. */
export function keptBefore(file: string): string | null {
  const { dev, ino } = statSync(file)
  const names = readdirSync(dirname(file)).filter((name) =>
    name.startsWith(`${basename(file)}.before-restore-`),
  )
  const same = names
    .map((name) => join(dirname(file), name))
    .find((path) => statSync(path).ino === ino && statSync(path).dev === dev)
  return same ?? null
}

/** One that is kept already is the one that belongs there: a reader has made another since, with nothing in it. */
function moveLog(log: string, kept: string): void {
  if (!existsSync(log)) return
  if (existsSync(kept)) rmSync(log)
  else renameSync(log, kept)
}
