/*
 * The disk under the daemon: every statement of its SQLite passes here, so that the disk can be full, and the process can
 * be killed right before any of them.
 */

import { createRequire, registerHooks } from 'node:module'
import type Sqlite from 'better-sqlite3'
import { currentProcess, KilledError, type SimulatedProcess } from './processes.js'

const require = createRequire(import.meta.url)
// Read as the library is loaded.
process.env.SQLITE_USE_URI = '1'
const Native = require('better-sqlite3') as typeof Sqlite

export interface Disk {
  isFull: boolean
  /** Called before each statement. */
  onStatement: () => void
}

const disks = new Map<SimulatedProcess, Disk>()
const opened = new Map<SimulatedProcess, Set<Sqlite.Database>>()

export function giveDisk(owner: SimulatedProcess, disk: Disk): void {
  disks.set(owner, disk)
  opened.set(owner, new Set())
}

/** Closes what a dead process has left open, as the system does. */
export function closeLeft(owner: SimulatedProcess): void {
  for (const database of opened.get(owner) ?? []) if (database.open) database.close()
  opened.delete(owner)
  disks.delete(owner)
}

function before(database: Sqlite.Database, isWrite: boolean): void {
  const owner = currentProcess()
  if (owner === null) return
  const disk = disks.get(owner)
  if (disk === undefined) {
    if (owner.isDead) throw new KilledError(owner.name)
    return
  }
  opened.get(owner)?.add(database)
  if (!owner.isDead) disk.onStatement()
  if (owner.isDead) throw new KilledError(owner.name)
  // What is open for reading alone needs none, not even at a commit.
  if (isWrite && disk.isFull && !database.readonly)
    throw new Native.SqliteError('database or disk is full', 'SQLITE_FULL')
}

/** Whether it may need room. */
function isWrite({ source, readonly }: Sqlite.Statement): boolean {
  return readonly ? source === 'commit' : !/^\s*(pragma|begin|rollback)/i.test(source)
}

type Call = (this: Sqlite.Statement, ...values: unknown[]) => unknown

/** Puts itself before every statement of this process. */
export function replaceDisk(): void {
  const own = new URL('./own-database.ts', import.meta.url).href
  registerHooks({
    resolve: (specifier, context, next) =>
      specifier === 'better-sqlite3' && context.parentURL?.includes('/src/')
        ? { url: own, format: 'module-typescript', shortCircuit: true }
        : next(specifier, context),
  })
  const sample = new Native(':memory:')
  const statements = Object.getPrototypeOf(sample.prepare('select 1')) as Record<string, Call>
  sample.close()
  for (const name of ['run', 'all', 'get', 'iterate']) {
    const native = statements[name] as Call
    statements[name] = function (...values) {
      before(this.database, isWrite(this))
      return native.apply(this, values)
    }
  }
  const databases = Native.prototype as unknown as Record<
    string,
    (this: Sqlite.Database, text: string) => unknown
  >
  const { exec } = databases as Record<string, (this: Sqlite.Database, text: string) => unknown>
  databases.exec = function (text) {
    before(this, false)
    return exec?.call(this, text)
  }
}
