import { realpathSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { type Finding, fail, warn } from './finding.js'

const OTHERS = 0o077
const OTHERS_MAY_WRITE = 0o022
const OTHERS_MAY_ENTER = 0o011

/** A file or folder that others than its owner may do something with, by its own mode. */
export interface OpenFile {
  readonly path: string
  readonly mode: number
  readonly mayWrite: boolean
  /** Whether its folder lets nobody in, whatever its own mode says. */
  readonly isShutIn: boolean
}

/** Null also where there is no such file: whether there should be one is another check's question. */
export function openFileAt(path: string): OpenFile | null {
  const mode = modeOf(path)
  if ((mode & OTHERS) === 0) return null
  const isShutIn = (modeOf(dirname(realpathSync(path))) & OTHERS_MAY_ENTER) === 0
  return { path, mode: mode & 0o777, mayWrite: (mode & OTHERS_MAY_WRITE) !== 0, isShutIn }
}

/** What others may do with a file; no failure as long as its folder lets nobody in. */
export function openTo(level: 'warn' | 'fail', act: string, file: OpenFile): Finding {
  return told(file.isShutIn ? 'warn' : level, `others may ${act} ${shown(file)}`, `chmod 600 ${file.path}`)
}

export function checkFolder(path: string): Finding | null {
  const folder = openFileAt(path)
  if (folder === null) return null
  const [level, act] = folder.mayWrite
    ? (['fail', 'replace what is in'] as const)
    : (['warn', 'look into'] as const)
  return told(level, `others may ${act} ${shown(folder)}`, `chmod 700 ${path}`)
}

export function checkDataFile(path: string): Finding | null {
  const file = openFileAt(path)
  return file && openTo('fail', 'open', file)
}

/**
 * Of files of one kind, however many: one finding, as of a single file where only one is open.
 * @param pattern what a shell takes for all of them, and maybe for some that are closed
 */
export function checkAlike(folder: string, names: readonly string[], pattern: string): Finding | null {
  const open = names.flatMap((name) => openFileAt(join(folder, name)) ?? [])
  const [first] = open
  if (first === undefined) return null
  if (open.length === 1) return openTo('fail', 'open', first)
  const isShutIn = open.every((file) => file.isShutIn)
  const all = join(folder, pattern)
  const named = shown({ ...first, path: basename(first.path) })
  const detail = `others may open ${open.length} files ${all}, the first ${named}`
  return told(isShutIn ? 'warn' : 'fail', detail, `chmod 600 ${all}`)
}

function shown({ path, mode }: Pick<OpenFile, 'path' | 'mode'>): string {
  return `${path}, of mode ${mode.toString(8).padStart(4, '0')}`
}

function told(level: 'warn' | 'fail', detail: string, todo: string): Finding {
  return { warn, fail }[level]('files', detail, todo)
}

function modeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.mode ?? 0
}
