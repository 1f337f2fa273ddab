import { closeSync, existsSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { MANUAL_ENDPOINT } from '../provider/endpoint.js'
import type { Environment } from '../provider/event.js'
import { type ErasureAct, loadErasureActs } from '../store/erasures.js'
import { type DeliveryInput, loadStoredIds } from '../store/events.js'
import { type Db, eventKey, type PersonKey } from '../store/schema.js'
import { openDatabase } from '../store/sqlite/dialect.js'
import { ensurePrivateFile, sync } from '../store/sqlite/file.js'
import { formerErasureIdOf, newActId } from './act-ids.js'
import { undatedAct } from './acts.js'

/*
 * The list of erasures: a file beside the database with a line of JSON for each. It survives a restore, and says who
 * was erased since the backup. A line is on the disk before its erasure is committed: after a crash between the two,
 * the next start erases.
 */

/** Enough to repeat the erasure with the same result. */
interface ListedErasure extends PersonKey {
  readonly eventId: string
  /** Epoch milliseconds. */
  readonly at: number
  readonly actor: string
  readonly reason: string | null
}

export function erasureListOf(databaseFile: string): string {
  return `${databaseFile}.erasures`
}

/**
 * The erasures, the first one first; and how many lines can't be read: cut off by a crash, or damaged. Null: there is no
 * such file.
 */
export function readErasureList(file: string) {
  if (!existsSync(file)) return null
  const lines = readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
  const erasures = lines.map(erasureIn).filter((one) => one !== null)
  return { erasures: withoutMistaken(erasures), unreadable: lines.length - erasures.length }
}

/**
 * Version 1.0.0 could list the customer of a grant that had the id of somebody's erasure: of lines with one id, those
 * count whose customer it is made of.
 */
function withoutMistaken(erasures: readonly ListedErasure[]): readonly ListedErasure[] {
  const eventOf = ({ environment, eventId }: ListedErasure) => eventKey(environment, eventId)
  const isOwn = (one: ListedErasure) => formerErasureIdOf(one) === one.eventId
  const byEvent = Map.groupBy(erasures, eventOf)
  return erasures.filter((one) => {
    const same = byEvent.get(eventOf(one)) ?? []
    return same.length === 1 || isOwn(one) || !same.some(isOwn)
  })
}

function erasureIn(line: string): ListedErasure | null {
  try {
    const { environment, customerId, eventId, at, actor, reason } = JSON.parse(line) as ListedErasure
    if (typeof customerId !== 'string' || typeof eventId !== 'string' || typeof at !== 'number') return null
    return { environment, customerId, eventId, at, actor, reason }
  } catch {
    return null
  }
}

/** Adds the missing erasures; they are on the disk when it returns. */
export function listErasures(file: string, acts: readonly ErasureAct[]): void {
  const listed = new Set(readErasureList(file)?.erasures.map(keyOf))
  const lines = acts
    .filter((act) => !listed.has(keyOf(act)))
    .map(({ environment, customerId, id: eventId, createdAt: at, actor, reason }) =>
      JSON.stringify({ environment, customerId, eventId, at, actor, reason } satisfies ListedErasure),
    )
  if (lines.length === 0) return
  ensurePrivateFile(file)
  const opened = openSync(file, 'a')
  try {
    // The line break comes first, to end a line cut off by a crash.
    writeSync(opened, `${/[^\n]$/.test(readFileSync(file, 'utf8')) ? '\n' : ''}${lines.join('\n')}\n`)
    fsyncSync(opened)
  } finally {
    closeSync(opened)
  }
  sync(dirname(file))
}

/**
 * Repeats erasures that are on the list but not in the database, and adds missing ones to the list, such as after its
 * loss. The data of these people is removed later.
 * @returns how many were repeated
 */
export async function applyErasureList(
  db: Db,
  file: string,
  write: (acts: readonly DeliveryInput[]) => Promise<unknown>,
): Promise<number> {
  const erased = new Set((await loadErasureActs(db)).map(keyOf))
  const missing = (readErasureList(file)?.erasures ?? []).filter((one) => !erased.has(keyOf(one)))
  const taken = new Map<Environment, ReadonlySet<string>>()
  for (const [environment, own] of Map.groupBy(missing, (one) => one.environment)) {
    const ids = own.map(({ eventId }) => eventId)
    taken.set(environment, new Set(await loadStoredIds(db, environment, ids)))
  }
  // An id that something else has would make the erasure a duplicate of that.
  const acts = missing.map((one) => {
    return taken.get(one.environment)?.has(one.eventId) ? { ...one, eventId: newActId() } : one
  })
  if (acts.length > 0) await write(acts.map(deliveryOf))
  listErasures(file, await loadErasureActs(db))
  return missing.length
}

/**
 * Lists the erasures in a database that is about to be replaced: its own list may be missing or damaged. An unreadable
 * database must not prevent the restore.
 */
export async function listErasuresOf(database: string, file: string): Promise<void> {
  if (!existsSync(database)) return
  try {
    const db = openDatabase(database, { readOnly: true })
    try {
      listErasures(file, await loadErasureActs(db))
    } finally {
      await db.destroy()
    }
  } catch (error) {
    // An error of the list itself is the system's.
    if (error instanceof Error && 'syscall' in error) throw error
  }
}

function deliveryOf({ environment, eventId: id, customerId, actor, reason, at }: ListedErasure) {
  const act = { ...undatedAct({ id, type: 'manual.erased', customerId, actor, reason }), createdAt: at }
  const body = Buffer.from(JSON.stringify(act))
  return { endpoint: MANUAL_ENDPOINT, environment, body, headers: null, receivedAt: at }
}

function keyOf({ environment, customerId }: PersonKey): string {
  return `${environment} ${customerId}`
}
