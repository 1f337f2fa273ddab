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
  writeSync,
} from 'node:fs'
import type { Config } from '../config/types.js'
import { LatchkeyError } from '../errors.js'
import { assertNotOwnFile, leadsTo } from '../store/sqlite/file.js'
import { refusalText } from './system-refusal.js'

const OWNER_ONLY = 0o600

/** Something that is written bit by bit, and there whole or not at all. */
export interface Output {
  write(content: string | Uint8Array): void
  /** Puts it where it was meant to be. */
  finish(): void
  /** Leaves nothing behind of what was not finished. */
  discard(): void
}

export interface OutputFileOptions {
  /** Whether it takes the place of a file that is there. */
  readonly replace: boolean
  /** What the program itself lives on: it takes the place of none of that. */
  readonly config: Pick<Config, 'path' | 'database'>
}

/**
 * A file that only its owner may read. It takes the place of another only if told to.
 * @throws {LatchkeyError} `output_failed`, where another file stands in its place too; `usage` where that is the
 * database, the config, or no file at all
 */
export function openOutputFile(path: string, { replace, config }: OutputFileOptions): Output {
  assertNotInUse(path, config)
  if (existsSync(path)) assertReplaceable(path, replace)
  const made = `${path}.${randomBytes(6).toString('hex')}.new`
  const file = told(path, () => openSync(made, 'wx', OWNER_ONLY))
  let isOpen = true
  const close = (): void => {
    if (isOpen) closeSync(file)
    isOpen = false
  }
  return {
    write: (content) =>
      told(path, () => {
        const bytes = Buffer.from(content)
        for (let written = 0; written < bytes.length; ) written += writeSync(file, bytes, written)
      }),
    finish: () =>
      told(path, () => {
        fsyncSync(file)
        close()
        // A link, unlike a new name, never takes the place of a file that came meanwhile.
        if (replace) renameSync(made, path)
        else linkSync(made, path)
      }),
    discard: () => {
      close()
      rmSync(made, { force: true })
    },
  }
}

function assertNotInUse(path: string, config: OutputFileOptions['config']): void {
  assertNotOwnFile(config.database.file, path)
  if (!leadsTo(config.path, path)) return
  throw new LatchkeyError('usage', `${path} is the config that is in use: name another file.`)
}

function assertReplaceable(path: string, replace: boolean): void {
  if (!replace) throw standsThere(path)
  // A device or a socket would be gone for whoever uses it.
  if (statSync(path).isFile()) return
  throw new LatchkeyError('usage', `${path} is no file, and is not replaced: name another one.`)
}

function told<T>(path: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') throw standsThere(path)
    throw new LatchkeyError('output_failed', `${path} can't be written: ${refusalText(error)}`, {
      cause: error,
    })
  }
}

function standsThere(path: string): LatchkeyError {
  const message = `${path} is there already: name another file, or replace it with --force`
  return new LatchkeyError('output_failed', message)
}
