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

interface FinishOptions {
  readonly replace: boolean
  readonly unless?: () => void
}

/** A file that is written in parts, and appears complete or not at all. */
export interface NewFile {
  write(content: string | Uint8Array): void
  /**
   * Moves it into place, replacing another file only if asked to; else throws `EEXIST`, even if that file is new.
   * `unless` is called at the last moment: nothing is moved if it throws.
   */
  finish(options: FinishOptions): void
  /** Removes an unfinished file. */
  discard(): void
}

/**
 * Begins a file that only its owner may read. `settle` is called with its name and descriptor before it is finished.
 */
export function beginFile(
  path: string,
  settle: (made: string, descriptor: number) => void = () => {},
): NewFile {
  const made = `${path}.${randomBytes(6).toString('hex')}.new`
  const file = openSync(made, 'wx', OWNER_ONLY)
  let isOpen = true
  const close = (): void => {
    if (isOpen) closeSync(file)
    isOpen = false
  }
  return {
    write: (content) => writeFileSync(file, content),
    finish({ replace, unless }) {
      settle(made, file)
      fsyncSync(file)
      close()
      unless?.()
      // Unlike a rename, a link never replaces a file created meanwhile.
      if (replace) renameSync(made, path)
      else linkSync(made, path)
    },
    discard() {
      close()
      rmSync(made, { force: true })
    },
  }
}

/** Replaces a file in one step, keeping its mode and owner; a link to it stays a link. */
export function replaceFile(path: string, text: string, options: Pick<FinishOptions, 'unless'> = {}): void {
  const target = realpathSync(path)
  const { mode } = statSync(target)
  const file = beginFile(target, (made, descriptor) => {
    fchmodSync(descriptor, mode & 0o777)
    giveToOwnerOf(target, made)
  })
  writeWhole(file, text, { ...options, replace: true })
}

/** What root writes for a daemon must be that daemon's. */
export function giveToOwnerOf(model: string, path: string): void {
  const { uid, gid } = statSync(model)
  const own = statSync(path)
  if (own.uid !== uid || own.gid !== gid) chownSync(path, uid, gid)
}

/**
 * Writes a file that only its owner may read, in one step; throws `EEXIST` if it may not replace another.
 * @param options `ownerOf`: a file whose owner it gets; by default it is the user's who runs this
 */
export function writePrivateFile(
  path: string,
  text: string,
  { replace, ownerOf }: { readonly replace: boolean; readonly ownerOf?: string },
): void {
  const settle = (made: string) => {
    if (ownerOf !== undefined) giveToOwnerOf(ownerOf, made)
  }
  writeWhole(beginFile(path, settle), text, { replace })
}

function writeWhole(file: NewFile, text: string, options: FinishOptions): void {
  try {
    file.write(text)
    file.finish(options)
  } finally {
    file.discard()
  }
}
