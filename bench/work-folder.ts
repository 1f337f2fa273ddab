import {
  closeSync,
  fdatasyncSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  rmSync,
  statfsSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { median } from './load/percentile.js'

/** What `statfs` calls file systems that live in memory: tmpfs and ramfs. */
const IN_MEMORY = [0x01021994, 0x858458f6]

/** What a shell answers for a command that was interrupted. */
const INTERRUPTED = 130

/** A process that is being killed may still write for a moment. */
const RETRIES = 5

/**
 * A new folder within `parent`, by default the system's for temporary files. It goes when this process ends, even if
 * by an interruption: it may hold gigabytes.
 */
export function createWorkFolder(parent: string | undefined): string {
  const folder = mkdtempSync(join(onDisk(parent ?? tmpdir()), 'latchkey-bench-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true, maxRetries: RETRIES }))
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(INTERRUPTED))
  return folder
}

/** Makes the folder if it is missing. Throws where it is in memory: to sync costs nothing there. */
export function onDisk(folder: string): string {
  mkdirSync(folder, { recursive: true })
  if (IN_MEMORY.includes(statfsSync(folder).type)) {
    throw new Error(
      `${folder} is in memory, where nothing is durable: name a folder on a disk with --folder.`,
    )
  }
  return folder
}

/** What a commit costs at least on the disk of a folder: the median of writing a page and waiting for the disk. */
export function syncMicros(folder: string): number {
  const file = openSync(join(folder, 'sync-probe'), 'w')
  const page = Buffer.alloc(8_192, 1)
  const times = Array.from({ length: 200 }, () => {
    const startedAt = performance.now()
    writeSync(file, page, 0, page.length, 0)
    fdatasyncSync(file)
    return (performance.now() - startedAt) * 1000
  })
  closeSync(file)
  return median(times)
}
