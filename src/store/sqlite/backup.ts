import { closeSync, existsSync, openSync, readSync, renameSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { LatchkeyError } from '../../errors.js'
import { assertIntact, copyDatabase, makeOneFile, type OnProgress } from './database-file.js'
import { assertNotOwnFile } from './own-files.js'
import { partNameFor, removePartsOf, sync } from './part-file.js'
import { ensurePrivateFile } from './private-file.js'

export interface BackupOptions {
  /** Whether a file that is there is replaced, once the new one is whole. */
  readonly overwrite: boolean
  readonly onProgress?: OnProgress
}

export interface Backup {
  readonly file: string
  readonly bytes: number
}

/**
 * Copies a database into one file that only its owner may read, beside whoever serves it. The file has its name
 * only once every page of it was looked at and is on the disk; where that fails, nothing is left.
 *
 * @throws {LatchkeyError} `store_missing`; `backup_exists`; `backup_failed`; `backup_damaged` where the database itself is;
 * `usage` where the target is the database
 */
export async function backUp(
  file: string,
  target: string,
  { overwrite, onProgress }: BackupOptions,
): Promise<Backup> {
  assertFree(file, target, overwrite)
  removePartsOf(target)
  const part = partNameFor(target)
  try {
    // Private before its first byte: whoever writes it then keeps the mode that it finds.
    ensurePrivateFile(part)
    await copyDatabase(file, part, onProgress)
    makeOneFile(part)
    assertIntact(part, `the copy of ${file}`)
    sync(part)
    assertFree(file, target, overwrite)
    renameSync(part, target)
    sync(dirname(target))
    return { file: target, bytes: statSync(target).size }
  } finally {
    removePartsOf(target)
  }
}

function assertFree(file: string, target: string, overwrite: boolean): void {
  assertNotOwnFile(file, target)
  if (!existsSync(target)) return
  if (!overwrite) {
    throw new LatchkeyError('backup_exists', `${target} is there already: --force replaces it.`)
  }
  if (!looksLikeDatabase(target)) {
    throw new LatchkeyError('usage', `${target} is no backup, and is not replaced: name another file.`)
  }
}

/** How every SQLite file begins. */
const DATABASE_HEADER = Buffer.from('SQLite format 3\0')

/** An empty file counts: it is a database without a table. */
function looksLikeDatabase(file: string): boolean {
  if (!statSync(file).isFile()) return false
  const opened = openSync(file, 'r')
  try {
    const begin = Buffer.alloc(DATABASE_HEADER.length)
    const length = readSync(opened, begin)
    return length === 0 || begin.equals(DATABASE_HEADER)
  } finally {
    closeSync(opened)
  }
}
