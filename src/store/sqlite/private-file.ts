import { closeSync, existsSync, mkdirSync, openSync } from 'node:fs'
import { dirname } from 'node:path'

/**
 * Makes the file, empty and readable by its owner alone (0600), and its folder (0700), where they are missing.
 * SQLite gives its side files (`-wal`, `-shm`) the mode of the file they belong to.
 */
export function ensurePrivateFile(file: string): void {
  ensurePrivateFolder(dirname(file))
  try {
    // Exclusive, so that a file which is there is not opened at all: closing any descriptor of it
    // would drop the locks that SQLite holds on it elsewhere in this process.
    closeSync(openSync(file, 'ax', 0o600))
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
  }
}

/** Step by step: told to make all of them at once, Node never returns where the system makes none, such as in `/proc`. */
function ensurePrivateFolder(folder: string): void {
  if (existsSync(folder)) return
  ensurePrivateFolder(dirname(folder))
  try {
    mkdirSync(folder, { mode: 0o700 })
  } catch (error) {
    // Somebody else may have made it meanwhile.
    if (!existsSync(folder)) throw error
  }
}
