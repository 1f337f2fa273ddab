import { randomBytes } from 'node:crypto'
import { closeSync, existsSync, fsyncSync, linkSync, openSync, renameSync, rmSync, writeSync } from 'node:fs'
import { LatchkeyError } from '../errors.js'

const OWNER_ONLY = 0o600

/** Something that is written bit by bit, and there whole or not at all. */
export interface Output {
  write(content: string | Uint8Array): void
  /** Puts it where it was meant to be. */
  finish(): void
  /** Leaves nothing behind of what was not finished. */
  discard(): void
}

/**
 * A file that only its owner may read. It takes the place of another only if told to.
 * @throws {LatchkeyError} `output_failed`, where another file stands in its place too
 */
export function openOutputFile(path: string, { replace }: { readonly replace: boolean }): Output {
  if (!replace && existsSync(path)) throw standsThere(path)
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

function told<T>(path: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') throw standsThere(path)
    const reason = error instanceof Error ? error.message : String(error)
    throw new LatchkeyError('output_failed', `${path} can't be written: ${reason}`, { cause: error })
  }
}

function standsThere(path: string): LatchkeyError {
  const message = `${path} is there already: name another file, or replace it with --force`
  return new LatchkeyError('output_failed', message)
}
