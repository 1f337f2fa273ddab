import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  realpathSync,
  rmSync,
  statSync,
  truncateSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { LatchkeyError } from '../../errors.js'

/*
 * Handles the files of a database: their paths, modes and locks, and unfinished files beside them.
 */

/** SQLite keeps these beside a file that it writes. */
const SIDE_SUFFIXES = ['-wal', '-shm', '-journal']

/** The files beside a database that belong to it. */
const OWN_SUFFIXES = ['', ...SIDE_SUFFIXES, '.lock', '.erasures']

/** Long enough for two processes that start at the same moment to settle who is first. */
const LOCK_TIMEOUT_MS = 250

/**
 * Resolves the links of a path, so that one database has one lock.
 * @throws {LatchkeyError} `store_in_use`: under a second name (a hard link) it could be served twice unnoticed, each
 * time with a separate write-ahead log
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

/**
 * Returns a function that tells whether each of these is still the file that it first saw. SQLite creates its side
 * files at the first use of the database.
 */
export function watchFiles(files: readonly string[]): () => boolean {
  const seen = new Map<string, string>()
  const areInPlace = (): boolean =>
    files.every((file) => {
      const found = statSync(file, { throwIfNoEntry: false })
      const now = found && `${found.dev} ${found.ino}`
      const before = seen.get(file) ?? now
      if (before !== undefined) seen.set(file, before)
      return now === before
    })
  areInPlace()
  return areInPlace
}

/**
 * Creates the file, empty and readable by its owner alone (0600), and its folder (0700), if they are missing.
 * SQLite gives its side files (`-wal`, `-shm`) the mode of the main file.
 */
export function ensurePrivateFile(file: string): void {
  ensurePrivateFolder(dirname(file))
  try {
    // Exclusive, so that an existing file is not opened at all: closing any descriptor of it would drop the locks
    // that SQLite holds on it elsewhere in this process.
    closeSync(openSync(file, 'ax', 0o600))
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
  }
}

/** One folder at a time: with `recursive`, Node never returns if the system creates none, as in `/proc`. */
function ensurePrivateFolder(folder: string): void {
  if (existsSync(folder)) return
  ensurePrivateFolder(dirname(folder))
  try {
    mkdirSync(folder, { mode: 0o700 })
  } catch (error) {
    // Another process may have created it meanwhile.
    if (!existsSync(folder)) throw error
  }
}

/** In bytes; 0 if there is no such file. */
export function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0
}

/** Waits until a file's bytes are on the disk; for a folder, its entries. */
export function sync(path: string): void {
  const opened = openSync(path, 'r')
  try {
    fsyncSync(opened)
  } finally {
    closeSync(opened)
  }
}

/** The temporary name of a file, beside its target: it gets its own name once it is complete. */
export function partNameFor(target: string): string {
  return `${target}.latchkey.part`
}

/**
 * Removes an unfinished file for this target, such as one of a killed process: it would keep data that an erasure has
 * removed since.
 */
export function removePartOf(target: string): void {
  for (const suffix of ['', ...SIDE_SUFFIXES]) rmSync(`${partNameFor(target)}${suffix}`, { force: true })
}

/** Empties an unfinished file for this target: a check of it, which nothing can interrupt, then fails at once. */
export function emptyPartOf(target: string): void {
  const part = partNameFor(target)
  if (existsSync(part)) truncateSync(part)
}

/**
 * Refuses a target that is the database itself or one of its own files, under any name: links may lead there too, and
 * the file need not exist yet.
 * @throws {LatchkeyError} `usage`
 */
export function assertNotOwnFile(database: string, target: string): void {
  // The side files are beside the database itself, not beside a link to it.
  const places = [database, placeNamed(database)]
  const own = places.flatMap((place) => OWN_SUFFIXES.map((suffix) => `${place}${suffix}`))
  if (own.some((file) => leadsTo(file, target))) {
    throw new LatchkeyError('usage', `${target} belongs to the database itself: choose another file.`)
  }
}

/** Whether two paths lead to one file, or would if it existed. */
export function leadsTo(one: string, other: string): boolean {
  if (placeNamed(one) === placeNamed(other)) return true
  const a = statSync(one, { throwIfNoEntry: false })
  const b = statSync(other, { throwIfNoEntry: false })
  return a !== undefined && b !== undefined && a.dev === b.dev && a.ino === b.ino
}

/** The path with its links resolved, as far as it exists. */
function placeNamed(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    const folder = dirname(path)
    return folder === path ? path : join(placeNamed(folder), basename(path))
  }
}

/**
 * Makes this process the only one that serves the database, until released.
 *
 * The operating system holds the lock on a side file (`<file>.lock`): it ends with the process, however that
 * ends. It stops another daemon, not a reader.
 *
 * @throws {LatchkeyError} `store_in_use`; `store_unavailable` if its folder is read-only
 */
export function lockStore(file: string): { release(): void } {
  const lockFile = `${file}.lock`
  ensurePrivateFile(lockFile)
  const lock = new Sqlite(lockFile, { timeout: LOCK_TIMEOUT_MS })
  try {
    lock.exec('begin exclusive')
  } catch (error) {
    lock.close()
    if (!isLocked(error)) throw orUnwritable(file, error)
    // The lock does not name its holder: a daemon keeps running, a command ends by itself.
    const todo =
      'If it is a daemon, stop it or use it through --url; if it is a command, wait until it has ended.'
    throw new LatchkeyError('store_in_use', `Another daemon or command is using ${file}. ${todo}`, {
      cause: error,
    })
  }
  // A reference to this object keeps the connection from the garbage collector, which would end the lock.
  return { release: () => void lock.close() }
}

/** Whether a process holds the lock of the store. Takes no lock that would keep another from starting. */
export function isStoreServed(file: string): boolean {
  const lockFile = `${file}.lock`
  if (!existsSync(lockFile)) return false
  const lock = new Sqlite(lockFile, { readonly: true, timeout: 0 })
  try {
    lock.prepare('select count(*) from sqlite_schema').get()
    return false
  } catch (error) {
    if (isLocked(error)) return true
    throw error
  } finally {
    lock.close()
  }
}

/** The error for a database that SQLite may not write; any other error as it is. */
export function orUnwritable(file: string, cause: unknown): unknown {
  if (!(cause instanceof Sqlite.SqliteError && cause.code.startsWith('SQLITE_READONLY'))) return cause
  const todo = 'run this as the user that owns it, or make both writable'
  const message = `the database ${file} can't be written, it or its folder is read-only (${cause.code}): ${todo}`
  return new LatchkeyError('store_unavailable', message, { cause })
}

function isLocked(error: unknown): boolean {
  return error instanceof Sqlite.SqliteError && error.code === 'SQLITE_BUSY'
}
