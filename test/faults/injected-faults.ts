import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { constants } from 'node:os'
import { dirname, join } from 'node:path'
import { onTestFinished } from 'vitest'
import { customerStory, type SentEvent } from '../stories.js'
import { ROOT, temporaryFolder } from '../world.js'

const COMPILER = ['cc', 'gcc', 'clang'].find((name) => spawnSync(name, ['--version']).status === 0)

/** Where it can't be made to fail, tests of it are reported as skipped. */
export const HAS_FAULTY_DISK = process.platform === 'linux' && COMPILER !== undefined

/** Which byte of the control file each has. */
const PLACE_OF = { write: 0, sync: 1, read: 2 } as const
export type DiskOperation = keyof typeof PLACE_OF

const { ENOSPC, EIO, EROFS } = constants.errno

/** What an operation comes to: an error of the system, or the end of the process at it. */
const FAULTS = { ENOSPC, EIO, EROFS, gone: 255 } as const
export type DiskFault = keyof typeof FAULTS

export interface FaultyDisk {
  /** For the environment of the daemon whose disk this is to be. */
  readonly env: Readonly<Record<string, string>>
  /** From now on, without a restart. */
  fail(operation: DiskOperation, fault: DiskFault): void
  heal(): void
}

/**
 * A disk that works until told otherwise, under a real daemon and its real SQLite: their calls to the system
 * are answered by a library that is loaded ahead of libc. It concerns the files that the pattern names.
 */
export function faultyDisk(files = 'latchkey.db*'): FaultyDisk {
  if (COMPILER === undefined) throw new Error('A faulty disk needs a C compiler.')
  const folder = temporaryFolder()
  const library = libraryBy(COMPILER)
  const control = join(folder, 'control')
  writeFileSync(control, new Uint8Array(Object.keys(PLACE_OF).length))
  const opened = openSync(control, 'r+')
  onTestFinished(() => closeSync(opened))
  const set = (operation: DiskOperation, value: number): void => {
    writeSync(opened, Uint8Array.of(value), 0, 1, PLACE_OF[operation])
  }
  return {
    env: { LD_PRELOAD: library, FAULTY_DISK_CONTROL: control, FAULTY_DISK_FILES: files },
    fail: (operation, fault) => set(operation, FAULTS[fault]),
    heal: () => {
      for (const operation of Object.keys(PLACE_OF)) set(operation as DiskOperation, 0)
    },
  }
}

/** Compiled once for each state of its source, and kept. */
function libraryBy(compiler: string): string {
  const source = join(import.meta.dirname, 'faulty-disk.c')
  const hash = createHash('sha256').update(readFileSync(source)).digest('hex').slice(0, 16)
  const library = join(ROOT, 'node_modules', '.cache', `faulty-disk-${hash}.so`)
  if (existsSync(library)) return library
  mkdirSync(dirname(library), { recursive: true })
  // Another process may look for it meanwhile.
  const part = `${library}.${process.pid}`
  execFileSync(compiler, ['-shared', '-fPIC', '-O1', '-x', 'c', '-o', part, source, '-ldl'])
  renameSync(part, library)
  return library
}

/** A way to have a daemon killed at a certain point. */
export interface Killing {
  readonly env: Readonly<Record<string, string>>
  /** From here on it is killed there. */
  readonly arm: () => void
}

/** Right before or after the next commit at which the query finds anything. */
export function killAtCommit(moment: 'before' | 'after', when = 'select 1'): Killing {
  const file = join(temporaryFolder(), 'kill-at-commit')
  const preload = join(import.meta.dirname, 'kill-at-commit.cjs')
  return {
    env: { NODE_OPTIONS: `--require ${preload}`, KILL_AT_COMMIT: file },
    arm: () => writeFileSync(file, JSON.stringify({ moment, when })),
  }
}

export function killOnDisk(operation: DiskOperation, files?: string): Killing {
  const disk = faultyDisk(files)
  return { env: disk.env, arm: () => disk.fail(operation, 'gone') }
}

const BODY_BYTES = 900_000

/** Of as many customers: together a little more than the write-ahead log takes before it moves into the database. */
export const LARGE_EVENTS: readonly SentEvent[] = Array.from({ length: 20 }, (_, n) => {
  const [{ id, body }] = customerStory(1000 + n).events as [SentEvent]
  return { id, body: JSON.stringify({ ...JSON.parse(body), padding: 'x'.repeat(BODY_BYTES) }) }
})
