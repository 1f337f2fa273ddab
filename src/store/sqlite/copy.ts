import { closeSync, existsSync, openSync, readSync, renameSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import Sqlite from 'better-sqlite3'
import { failureText, LatchkeyError } from '../../errors.js'
import { hasCode, isStoreBroken } from '../engine.js'
import { openConnection } from './connection.js'
import { assertNotOwnFile, ensurePrivateFile, partNameFor, removePartOf, sync } from './file.js'

/** In bytes. */
export type OnProgress = (copied: number, total: number) => void

/** 4 MB in pages of 4 KiB: few enough to show progress. */
const PAGES_PER_STEP = 1_000

/** The first bytes of every SQLite file. */
const DATABASE_HEADER = Buffer.from('SQLite format 3\0')
const HEADER_BYTES = 100

/** SQLite takes these files for parts of any database at the path. */
export const LOG_SUFFIXES = ['-wal', '-journal']

export interface Backup {
  readonly file: string
  readonly bytes: number
}

/**
 * Copies a database into one file that only its owner may read, while others use it. The file gets its name only after
 * every page was checked and is on the disk; a failure leaves nothing behind.
 * @param overwrite whether an existing file is replaced, once the new one is complete
 * @throws {LatchkeyError} `store_missing`; `backup_exists`; `backup_failed`; `backup_damaged` if the database itself
 * is damaged; `usage` if the target is the database
 */
export async function backUp(
  file: string,
  target: string,
  { overwrite, onProgress }: { readonly overwrite: boolean; readonly onProgress?: OnProgress },
): Promise<Backup> {
  assertFree(file, target, overwrite)
  removePartOf(target)
  const part = partNameFor(target)
  try {
    // Private before its first byte: SQLite keeps the existing mode.
    ensurePrivateFile(part)
    await copyDatabase(file, part, onProgress)
    makeOneFile(part)
    assertIntact(part, `the copy of ${file}`)
    sync(part)
    assertWhole(part, `the copy of ${file}`)
    assertFree(file, target, overwrite)
    renameSync(part, target)
    sync(dirname(target))
    return { file: target, bytes: statSync(target).size }
  } finally {
    removePartOf(target)
  }
}

function assertFree(file: string, target: string, overwrite: boolean): void {
  assertNotOwnFile(file, target)
  if (!existsSync(target)) return
  if (!overwrite) {
    throw new LatchkeyError('backup_exists', `${target} already exists; use --force to replace it.`)
  }
  if (!looksLikeDatabase(target)) {
    throw new LatchkeyError('usage', `${target} is not a backup, so it is not replaced: choose another file.`)
  }
}

/** An empty file is also one: a database without tables. */
function looksLikeDatabase(file: string): boolean {
  if (!statSync(file).isFile()) return false
  const header = headerOf(file)
  return header.length === 0 || header.subarray(0, DATABASE_HEADER.length).equals(DATABASE_HEADER)
}

/** Shorter if the file is. */
function headerOf(file: string): Buffer {
  const opened = openSync(file, 'r')
  try {
    const header = Buffer.alloc(HEADER_BYTES)
    return header.subarray(0, readSync(opened, header))
  } finally {
    closeSync(opened)
  }
}

/**
 * Compares the size of a database file with its header: SQLite reads the missing part of a last page as zeros, and
 * ignores what follows the last page.
 * @throws {LatchkeyError} `backup_damaged`
 */
export function assertWhole(file: string, shownAs: string): void {
  const header = headerOf(file)
  // Copying says what a file without this header is. With a log, the log has the newest size.
  const hasLog = LOG_SUFFIXES.some(
    (suffix) => (statSync(`${file}${suffix}`, { throwIfNoEntry: false })?.size ?? 0) > 0,
  )
  if (header.length < HEADER_BYTES || !looksLikeDatabase(file) || hasLog) return
  // The format writes the largest size, which does not fit, as 1.
  const pageBytes = header.readUInt16BE(16) === 1 ? 65_536 : header.readUInt16BE(16)
  const pages = header.readUInt32BE(28)
  // Written by a SQLite before 3.7.0, the number of pages is not valid.
  const isValid = pages > 0 && header.readUInt32BE(24) === header.readUInt32BE(92)
  const { size } = statSync(file)
  const whole = isValid ? pages * pageBytes : Math.ceil(size / pageBytes) * pageBytes
  if (size === whole) return
  const found = size < whole ? 'its end is missing' : 'something was added to its end'
  throw damagedBackup(shownAs, `${found}: it has ${size} bytes, but its header says ${whole}`)
}

/**
 * Copies the state of a database at one instant, including its write-ahead log, while others go on writing. Meanwhile
 * its log can't be truncated: it grows by what is written.
 *
 * @throws {LatchkeyError} `store_missing`; `backup_damaged`; `backup_failed` if the copy can't be written, or a disk
 * fails
 */
export async function copyDatabase(file: string, copy: string, onProgress?: OnProgress): Promise<void> {
  try {
    const sqlite = openConnection(file, { readOnly: true })
    try {
      // One snapshot for all steps: otherwise a copy restarts at every commit of others, and never ends under load.
      sqlite.exec('begin')
      sqlite.prepare('select 1 from sqlite_schema').get()
      const pageSize = Number(sqlite.pragma('page_size', { simple: true }))
      await sqlite.backup(copy, {
        progress: ({ totalPages, remainingPages }) => {
          onProgress?.((totalPages - remainingPages) * pageSize, totalPages * pageSize)
          return PAGES_PER_STEP
        },
      })
    } finally {
      sqlite.close()
    }
  } catch (error) {
    if (!(error instanceof Sqlite.SqliteError)) throw error
    const what = `${file} can't be copied to ${copy}`
    if (isDiskFailure(error)) throw diskFailed(what, error)
    if (isStoreBroken(error)) throw damagedBackup(file, error.message, error)
    throw new LatchkeyError('backup_failed', `${what}: ${error.message}.`, { cause: error })
  }
}

/** Whether a disk is full or fails: SQLite names no file, and reports a file size limit as a failing disk. */
export function isDiskFailure(error: unknown): boolean {
  return hasCode(error, /^SQLITE_(IOERR|FULL)(_|$)/)
}

/** @param what what failed, with the name of the file */
export function diskFailed(what: string, cause: unknown): LatchkeyError {
  const why = 'The disk may be full or fail, or a limit may keep a file from growing so large'
  return new LatchkeyError('backup_failed', `${what}: ${failureText(cause)}. ${why}.`, { cause })
}

function damagedBackup(shownAs: string, found: string, cause?: Error): LatchkeyError {
  return new LatchkeyError('backup_damaged', `${shownAs} is damaged: ${found}.`, { cause })
}

/**
 * Checks every page of a database that nobody else uses.
 * @throws {LatchkeyError} `backup_damaged`
 */
export function assertIntact(file: string, shownAs: string): void {
  try {
    const found = withConnection(file, (sqlite) => sqlite.pragma('integrity_check(1)', { simple: true }))
    if (found === 'ok') return
    // Its headline only names the database `main`.
    throw damagedBackup(shownAs, String(found).replace(/^\*\*\* in database main \*\*\*\n/, ''))
  } catch (error) {
    throw isStoreBroken(error) ? damagedBackup(shownAs, (error as Error).message) : error
  }
}

/**
 * Moves the log of a database that nobody else uses into the file itself: then it can be renamed, and read from a
 * read-only disk.
 * @throws {LatchkeyError} `store_unavailable`
 */
export function makeOneFile(file: string): void {
  const mode = withConnection(file, (sqlite) => sqlite.pragma('journal_mode = DELETE', { simple: true }))
  if (mode === 'delete') return
  throw new LatchkeyError('store_unavailable', `The log of ${file} can't be moved into it.`)
}

function withConnection<T>(file: string, use: (sqlite: Sqlite.Database) => T): T {
  const sqlite = new Sqlite(file, { fileMustExist: true })
  try {
    return use(sqlite)
  } finally {
    sqlite.close()
  }
}
