import { realpathSync, renameSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { LatchkeyError } from '../errors.js'
import { assertIntact, copyDatabase, makeOneFile, type OnProgress } from './database-file.js'
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
 * @throws {LatchkeyError} `store_missing`; `backup_exists`; `backup_damaged` where the database itself is;
 * `usage` where the target is the database
 */
export async function backUp(
  file: string,
  target: string,
  { overwrite, onProgress }: BackupOptions,
): Promise<Backup> {
  assertFree(file, target, overwrite)
  const part = partNameFor(target)
  try {
    // Its first bytes are private already: the copy keeps the mode that it finds.
    ensurePrivateFile(part)
    removePartsOfOthers(target, part)
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
