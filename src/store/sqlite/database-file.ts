import Sqlite from 'better-sqlite3'
import { failureText, LatchkeyError } from '../../errors.js'
import { isStoreBroken, openConnection } from './connection.js'

/** Told how far a copy has come, in bytes. */
export type OnProgress = (copied: number, total: number) => void

/** 4 MB in pages of 4 KiB: little enough that whoever copies can show how far it is. */
const PAGES_PER_STEP = 1_000

/**
 * Copies a database as it stands at one instant, its write-ahead log included, while others go on writing it.
 * Its log can't begin anew meanwhile: it grows by what is written.
 *
 * @throws {LatchkeyError} `store_missing`; `backup_damaged`; `backup_failed` where the copy can't be written, or a disk
 * fails
 */
export async function copyDatabase(file: string, copy: string, onProgress?: OnProgress): Promise<void> {
  try {
    await copyInSteps(file, copy, onProgress)
  } catch (error) {
    if (!(error instanceof Sqlite.SqliteError)) throw error
    const what = `${file} can't be copied to ${copy}`
    if (isDiskFailure(error)) throw diskFailed(what, error)
    if (isStoreBroken(error)) throw damaged(file, error.message, error)
    throw new LatchkeyError('backup_failed', `${what}: ${error.message}.`, { cause: error })
  }
}

/**
 * Whether a disk is full or fails: SQLite names no file, and tells a limit on the size of files like the latter. By its
 * code alone: it may come from another thread.
 */
export function isDiskFailure(error: unknown): boolean {
  return error instanceof Error && 'code' in error && /^SQLITE_(IOERR|FULL)(_|$)/.test(String(error.code))
}

/** `what`: what that kept from being done, the file by name. */
export function diskFailed(what: string, cause: unknown): LatchkeyError {
  const why = 'The disk may be full or fail, or a limit may keep a file from growing so large'
  return new LatchkeyError('backup_failed', `${what}: ${failureText(cause)}. ${why}.`, { cause })
}

function damaged(shownAs: string, found: string, cause?: Error): LatchkeyError {
  return new LatchkeyError('backup_damaged', `${shownAs} is damaged: ${found}.`, { cause })
}

async function copyInSteps(file: string, copy: string, onProgress?: OnProgress): Promise<void> {
  const sqlite = openConnection(file, { readOnly: true })
  try {
    // One snapshot for all steps: without it a copy begins anew at every commit of others, and never ends under load.
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
}

/**
 * Looks at every page of a database that nobody else uses.
 * @throws {LatchkeyError} `backup_damaged`
 */
export function assertIntact(file: string, shownAs: string): void {
  const found = readIntegrity(file)
  if (found === 'ok') return
  throw damaged(shownAs, found)
}

function readIntegrity(file: string): string {
  try {
    const found = withConnection(file, (sqlite) => sqlite.pragma('integrity_check(1)', { simple: true }))
    // Its headline names nothing but the only database there is.
    return String(found).replace(/^\*\*\* in database main \*\*\*\n/, '')
  } catch (error) {
    if (!isStoreBroken(error)) throw error
    return (error as Error).message
  }
}

/**
 * Moves all that a database keeps in side files into the file itself, where nobody else uses it: then it can be
 * renamed, and read from a disk that can't be written.
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
