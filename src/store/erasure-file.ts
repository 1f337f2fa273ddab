import { closeSync, existsSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Environment } from '../provider/event.js'
import type { Fingerprints } from '../provider/fingerprints.js'
import { ensurePrivateFile, sync } from './sqlite/file.js'

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

/** The one key of a line that tells of no erasure, but of those which may be missing. */
export const DOUBT = 'mayLackErasuresBefore'

/** One text for one erased customer of one environment. */
export function erasureKey({ environment, customerId }: RecordedErasure): string {
  return `${environment} ${customerId}`
}

/** It stays where it is when a backup takes the database's place. */
export function erasureFileOf(databaseFile: string): string {
  return `${databaseFile}.erasures`
}

/** Beside a new database, of which nobody has been erased yet: an empty list is a whole one, and none would leave it open. */
export function beginErasureList(databaseFile: string): void {
  ensurePrivateFile(erasureFileOf(databaseFile))
}

/** Every erasure that was written down, the first one first; a line that a crash cut off was never acknowledged. */
export function readErasures(file: string): readonly RecordedErasure[] {
  if (!existsSync(file)) return []
  const lines = readFileSync(file, 'utf8').split('\n')
  return lines.slice(0, -1).flatMap(parsed)
}

/** How many lines of it tell nothing: cut off by a crash, or damaged; null: there is no such file. */
export function countUnreadable(file: string): number | null {
  if (!existsSync(file)) return null
  const lines = readFileSync(file, 'utf8').split('\n')
  const isCutOff = lines.at(-1) !== ''
  const isUnreadable = (line: string) => parsed(line).length === 0 && doubtIn(line) === null
  return lines.slice(0, -1).filter(isUnreadable).length + (isCutOff ? 1 : 0)
}

/** The newest instant before which erasures may be missing in it, in epoch milliseconds; null: it tells of none. */
export function readDoubt(file: string): number | null {
  if (!existsSync(file)) return null
  const doubts = readFileSync(file, 'utf8').split('\n').map(doubtIn)
  return doubts.reduce((newest, at) => (at !== null && at > (newest ?? 0) ? at : newest), null)
}

/** Whether it tells of every erasure that was ever made here. */
export function isWholeList(file: string): boolean {
  return countUnreadable(file) === 0 && readDoubt(file) === null
}

/** On the disk when it returns. */
export function appendErasures(file: string, erasures: readonly RecordedErasure[]): void {
  appendLines(file, erasures)
}

/** From here on, whatever follows, it is no whole list until somebody removes this line, or puts another in its place. */
export function appendDoubt(file: string, before: number): void {
  appendLines(file, [{ [DOUBT]: new Date(before).toISOString() }])
}

function appendLines(file: string, told: readonly object[]): void {
  if (told.length === 0) return
  ensurePrivateFile(file)
  const opened = openSync(file, 'a')
  try {
    // Whatever a crash cut off before ends here.
    const lines = told.map((one) => JSON.stringify(one))
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

function doubtIn(line: string): number | null {
  try {
    const at = Date.parse((JSON.parse(line) as Partial<Record<string, string>>)[DOUBT] ?? '')
    return Number.isNaN(at) ? null : at
  } catch {
    return null
  }
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
