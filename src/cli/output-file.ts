import { randomBytes } from 'node:crypto'
import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import type { Config } from '../config/schema.js'
import { LatchkeyError } from '../errors.js'
import { assertNotOwnFile, leadsTo } from '../store/sqlite/file.js'
import { refusalText } from '../system-refusal.js'

const OWNER_ONLY = 0o600

/** A file that is written bit by bit, and appears whole or not at all. */
export interface Output {
  write(content: string | Uint8Array): void
  /** Puts it in its place. */
  finish(): void
  /** Removes what was not finished. */
  discard(): void
}

/**
 * Opens a file that only its owner may read. It replaces another file only if asked to, and never the database or the
 * config.
 * @throws {LatchkeyError} `output_failed`, also if another file is in its place; `usage` if the path leads to the
 * database, the config, or no regular file
 */
export function openOutputFile(
  path: string,
  { replace, config }: { readonly replace: boolean; readonly config: Config | null },
): Output {
  if (config !== null) assertNotOwnFile(config.database.file, path)
  if (config !== null && leadsTo(config.path, path)) {
    throw new LatchkeyError('usage', `${path} is the config that is in use: name another file.`)
  }
  if (existsSync(path)) assertReplaceable(path, replace)
  const part = `${path}.${randomBytes(6).toString('hex')}.new`
  const file = orFailed(path, () => openSync(part, 'wx', OWNER_ONLY))
  let isOpen = true
  const close = (): void => {
    if (isOpen) closeSync(file)
    isOpen = false
  }
  return {
    write: (content) => orFailed(path, () => writeFileSync(file, content)),
    finish: () =>
      orFailed(path, () => {
        fsyncSync(file)
        close()
        // Unlike a rename, a link never replaces a file that was made meanwhile.
        if (replace) renameSync(part, path)
        else linkSync(part, path)
      }),
    discard() {
      close()
      rmSync(part, { force: true })
    },
  }
}

function assertReplaceable(path: string, replace: boolean): void {
  if (!replace) throw alreadyThere(path)
  // A device or a socket would be gone for everything that uses it.
  if (statSync(path).isFile()) return
  throw new LatchkeyError('usage', `${path} is no file, and is not replaced: name another one.`)
}

function orFailed<T>(path: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') throw alreadyThere(path)
    throw new LatchkeyError('output_failed', `${path} can't be written: ${refusalText(error)}`, {
      cause: error,
    })
  }
}

function alreadyThere(path: string): LatchkeyError {
  const message = `${path} is there already: name another file, or replace it with --force`
  return new LatchkeyError('output_failed', message)
}
