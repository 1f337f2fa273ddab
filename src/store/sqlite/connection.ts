import { existsSync, statSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import Sqlite from 'better-sqlite3'
import { failureText, LatchkeyError } from '../../errors.js'
import { hasCode, isStoreBroken } from '../engine.js'
import { ensurePrivateFile, isStoreServed, orUnwritable, sizeOf } from './file.js'

/** Short, because waiting for a lock blocks the whole thread: a writer retries by itself. */
const BUSY_TIMEOUT_MS = 50

/** 16 MB in pages of 4 KiB: a checkpoint's syncs spread over many commits, yet a start replays little. */
const CHECKPOINT_PAGES = 4_000

/** A write-ahead log that grew during a long read is truncated to this size after its checkpoint. */
const WAL_SIZE_LIMIT_BYTES = 64 * 1024 * 1024

/**
 * In KiB: holds the upper pages of every index of 5,000,000 events, so that a lookup only reads its leaf. (With
 * SQLite's default of 2 MB, a delivery to such a store read 20 pages and a query 4.7; with this, 11 and 3.4.)
 */
const PAGE_CACHE_KIB = 16_000

/** For a long-lived connection. It reads the database's header. */
export const KEEP_UPPER_PAGES = `cache_size = -${PAGE_CACHE_KIB}`

/** For long work: the library's own 16 MB would fill, and each commit of the writer empties them. */
export const KEEP_FEW_PAGES = 'cache_size = -2000'

/** `PRAGMA synchronous` reads back as a number. */
const SYNCHRONOUS_FULL = 2

export interface Access {
  readonly readOnly: boolean
  /** Also makes no file beside a database that no process has open. Others may begin to write it: see `watchRest`. */
  readonly atRest?: boolean
}

/**
 * Opens the database without Kysely, which is slow to load and which some threads don't need.
 *
 * @throws {LatchkeyError} `store_missing` if there is no file when only reading, or none beside its log;
 * `store_unavailable` if the file can't be written durably. SQLite's own errors pass through.
 */
export function openConnection(file: string, { readOnly, atRest = false }: Access): Sqlite.Database {
  if (readOnly && !existsSync(file)) {
    throw new LatchkeyError('store_missing', `There is no database at ${file}.`)
  }
  if (hasStrayLog(file)) {
    const todo = `Put the database back, or restore a backup (latchkey restore); to start over, move the log away.`
    throw new LatchkeyError(
      'store_missing',
      `${file} is missing or empty, but its write-ahead log is there. ${todo}`,
    )
  }
  if (!readOnly) ensurePrivateFile(file)
  const options = { readonly: readOnly, fileMustExist: true, timeout: BUSY_TIMEOUT_MS }
  const sqlite = (atRest ? openAtRest(file, options) : null) ?? new Sqlite(file, options)
  try {
    sqlite.pragma('foreign_keys = ON')
    if (!readOnly) makeDurable(sqlite, file)
  } catch (error) {
    sqlite.close()
    throw isStoreBroken(error) ? damaged(file, error) : orUnwritable(file, error)
  }
  return sqlite
}

/**
 * Opens a database that is at rest without the files of a log, which even a reader makes, and can't make in a folder
 * that it may not write. Null: a process has it open or has left a log, or SQLite was not told to take addresses
 * (SQLITE_USE_URI, as it was loaded).
 */
function openAtRest(file: string, options: Sqlite.Options): Sqlite.Database | null {
  if (sizeOf(`${file}-wal`) > 0 || isStoreServed(file)) return null
  try {
    return new Sqlite(`${pathToFileURL(file).href}?immutable=1`, options)
  } catch (error) {
    if (hasCode(error, /^SQLITE_CANTOPEN(_|$)/)) return null
    throw error
  }
}

/** Returns a function that tells whether the file is still what it is now: if so, all that was read belongs together. */
export function watchRest(file: string): () => boolean {
  const version = () => {
    const { ino, size, mtimeNs } = statSync(file, { bigint: true })
    return `${ino} ${size} ${mtimeNs}`
  }
  const before = version()
  return () => version() === before
}

/**
 * Whether the database is missing or empty while its log exists. SQLite would delete such a log, even when opening the
 * database read-only, and with it the data that only the log holds.
 */
export function hasStrayLog(file: string): boolean {
  return sizeOf(file) === 0 && sizeOf(`${file}-wal`) > 0
}

/** The error for a file with invalid content, or on a disk that fails or is full. */
export function damaged(file: string, cause: unknown): LatchkeyError {
  const message = hasCode(cause, /^SQLITE_IOERR(_|$)/)
    ? `${file} can't be read or written: ${failureText(cause)}. Check its disk, and the free space on it.`
    : `${file} is damaged, or not a database: restore a backup (latchkey restore), or move it away.`
  return new LatchkeyError('store_unavailable', message, { cause })
}

function makeDurable(sqlite: Sqlite.Database, file: string): void {
  const journalMode = sqlite.pragma('journal_mode = WAL', { simple: true })
  // After the journal mode: better-sqlite3 lowers the default to NORMAL in WAL mode.
  sqlite.pragma('synchronous = FULL')
  const synchronous = sqlite.pragma('synchronous', { simple: true })
  if (journalMode !== 'wal' || synchronous !== SYNCHRONOUS_FULL) {
    throw new LatchkeyError(
      'store_unavailable',
      `${file} can't be written durably: journal_mode is ${journalMode}, synchronous ${synchronous}.`,
    )
  }
  // Zeroes deleted content in its page, so that an erasure leaves no remnants there.
  sqlite.pragma('secure_delete = ON')
  sqlite.pragma(KEEP_UPPER_PAGES)
  sqlite.pragma(`wal_autocheckpoint = ${CHECKPOINT_PAGES}`)
  sqlite.pragma(`journal_size_limit = ${WAL_SIZE_LIMIT_BYTES}`)
}
