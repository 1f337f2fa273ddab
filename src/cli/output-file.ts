import { existsSync, statSync } from 'node:fs'
import type { Config } from '../config/schema.js'
import { beginFile, type NewFile } from '../config/write-file.js'
import { LatchkeyError } from '../errors.js'
import { assertNotOwnFile, leadsTo } from '../store/sqlite/file.js'
import { refusalText } from '../system-refusal.js'

/**
 * Opens a file that only its owner may read. Replaces an existing file only with `--force`, and never the database or
 * the config.
 * @throws {LatchkeyError} `output_failed`, also if another file is in its place; `usage` if the path leads to the
 * database, the config, or no regular file
 */
export function openOutputFile(
  path: string,
  { replace, config }: { readonly replace: boolean; readonly config: Config | null },
): Pick<NewFile, 'write' | 'discard'> & { finish(): void } {
  if (config !== null) assertNotOwnFile(config.database.file, path)
  if (config !== null && leadsTo(config.path, path)) {
    throw new LatchkeyError('usage', `${path} is the config that is in use: name another file.`)
  }
  if (existsSync(path)) {
    if (!replace) throw alreadyThere(path)
    // Replacing a device or a socket would break everything that uses it.
    if (!statSync(path).isFile())
      throw new LatchkeyError('usage', `${path} is not a file, so it is not replaced: name another one.`)
  }
  const file = orFailed(path, () => beginFile(path))
  return {
    write: (content) => orFailed(path, () => file.write(content)),
    finish: () => orFailed(path, () => file.finish({ replace })),
    discard: file.discard,
  }
}

function orFailed<T>(path: string, work: () => T): T {
  try {
    return work()
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'EEXIST') throw alreadyThere(path)
    const message = `${path} can't be written: ${refusalText(cause)}`
    throw new LatchkeyError('output_failed', message, { cause })
  }
}

function alreadyThere(path: string): LatchkeyError {
  const message = `${path} exists already: name another file, or replace it with --force`
  return new LatchkeyError('output_failed', message)
}
