import { randomBytes } from 'node:crypto'
import {
  chownSync,
  closeSync,
  fchmodSync,
  fsyncSync,
  linkSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'

const OWNER_ONLY = 0o600

/** Replaces a file in one step, keeping its mode and owner; a link to it stays a link. */
export function replaceFile(path: string, text: string): void {
  const target = realpathSync(path)
  const { mode, uid, gid } = statSync(target)
  withNewFile(target, text, mode & 0o777, (made) => {
    const own = statSync(made)
    if (own.uid !== uid || own.gid !== gid) chownSync(made, uid, gid)
    renameSync(made, target)
  })
}

/** Writes a file that only its owner may read, in one step, in place of what was there. */
export function writePrivateFile(path: string, text: string): void {
  withNewFile(path, text, OWNER_ONLY, (made) => renameSync(made, path))
}

/** The same, but never in place of another file: throws `EEXIST`, however late that one came. */
export function createPrivateFile(path: string, text: string): void {
  withNewFile(path, text, OWNER_ONLY, (made) => linkSync(made, path))
}

function withNewFile(beside: string, text: string, mode: number, place: (made: string) => void): void {
  const made = `${beside}.${randomBytes(6).toString('hex')}.new`
  try {
    const file = openSync(made, 'wx', OWNER_ONLY)
    try {
      writeFileSync(file, text)
      fchmodSync(file, mode)
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
    place(made)
  } finally {
    rmSync(made, { force: true })
  }
}
