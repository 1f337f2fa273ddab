import { closeSync, existsSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Environment } from '../provider/event.js'
import type { Fingerprints } from '../provider/fingerprints.js'
import { sync } from './part-file.js'
import { ensurePrivateFile } from './private-file.js'

/** One erasure, as it is written down beside the database: enough to make it again where a backup knows nothing of it. */
export interface RecordedErasure {
  readonly environment: Environment
  readonly customerId: string
  readonly eventId: string
  /** Epoch milliseconds. */
  readonly at: number
  readonly actor: string
  readonly reason: string | null
  /** By what they were known; none in a line of an earlier program. */
  readonly fingerprints: readonly Fingerprints[]
}

/** One text for one erased customer of one environment. */
export function erasureKey({ environment, customerId }: RecordedErasure): string {
  return `${environment} ${customerId}`
}

/** It stays where it is when a backup takes the database's place. */
export function erasureFileOf(databaseFile: string): string {
  return `${databaseFile}.erasures`
}

/** Every erasure that was written down, the first one first; a line that a crash cut off was never acknowledged. */
export function readErasures(file: string): readonly RecordedErasure[] {
  if (!existsSync(file)) return []
  const lines = readFileSync(file, 'utf8').split('\n')
  return lines.slice(0, -1).flatMap(parsed)
}

/** How many lines of it tell of nobody: cut off by a crash, or damaged; null: there is no such file. */
export function countUnreadable(file: string): number | null {
  if (!existsSync(file)) return null
  const lines = readFileSync(file, 'utf8').split('\n')
  const isCutOff = lines.at(-1) !== ''
  return lines.slice(0, -1).filter((line) => parsed(line).length === 0).length + (isCutOff ? 1 : 0)
}

/** Resolved to the disk when it returns. */
export function appendErasures(file: string, erasures: readonly RecordedErasure[]): void {
  if (erasures.length === 0) return
  ensurePrivateFile(file)
  const opened = openSync(file, 'a')
  try {
    // Whatever a crash cut off before ends here.
    const lines = erasures.map((erasure) => JSON.stringify(erasure))
    writeSync(opened, `${endsWithinLine(file) ? '\n' : ''}${lines.join('\n')}\n`)
    fsyncSync(opened)
  } finally {
    closeSync(opened)
  }
  sync(dirname(file))
}

function endsWithinLine(file: string): boolean {
  const text = readFileSync(file, 'utf8')
  return text !== '' && !text.endsWith('\n')
}

function parsed(line: string): RecordedErasure[] {
  try {
    const read = JSON.parse(line) as Omit<RecordedErasure, 'fingerprints'> & Partial<RecordedErasure>
    const { environment, customerId, eventId, at, actor, reason, fingerprints = [] } = read
    if (typeof customerId !== 'string' || typeof at !== 'number') return []
    return [{ environment, customerId, eventId, at, actor, reason, fingerprints }]
  } catch {
    return []
  }
}
