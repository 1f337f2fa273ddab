import { existsSync, realpathSync, statSync } from 'node:fs'
import { LatchkeyError } from '../../errors.js'

/**
 * The file that a path leads to, so that one database has one lock, whatever links lead there.
 * @throws {LatchkeyError} `store_in_use`: under a second name (a hard link) it could be served twice unseen,
 * each with a write-ahead log of its own
 */
export function placeOf(file: string): string {
  if (!existsSync(file)) return file
  const place = realpathSync(file)
  if (statSync(place).nlink > 1) {
    throw new LatchkeyError(
      'store_in_use',
      `${place} has a second name (a hard link): give it only one. If a restore was interrupted, run it again.`,
    )
  }
  return place
}

/** Tells whether the file is still the one that stands at its path now, and has not been emptied. */
export function watchPlace(file: string): () => boolean {
  const { dev, ino, size } = statSync(file)
  return () => {
    const now = statSync(file, { throwIfNoEntry: false })
    return now !== undefined && now.dev === dev && now.ino === ino && (size === 0 || now.size > 0)
  }
}

/**
 * Tells whether each of these is still the file that it was when it was first seen. SQLite makes its side files
 * with the first use of the database, and changes their size.
 */
export function watchFiles(files: readonly string[]): () => boolean {
  const seen = new Map<string, number>()
  return () =>
    files.every((file) => {
      const now = statSync(file, { throwIfNoEntry: false })?.ino
      const before = seen.get(file) ?? now
      if (before !== undefined) seen.set(file, before)
      return now === before
    })
}
