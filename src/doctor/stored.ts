import { existsSync } from 'node:fs'
import type { Kysely } from 'kysely'
import type { Config } from '../config/schema.js'
import { isLatchkeyError } from '../errors.js'
import { assertDatabase } from '../operations/assert-database.js'
import { compareReadings, endpointsOf } from '../recompute/read-again.js'
import { compareBodies, type RowCheck, readEventForms, readSourceForms } from '../store/damaged-rows.js'
import { engineOf, isStoreBroken, isStoreBusy } from '../store/engine.js'
import { pendingMigrations } from '../store/migrate.js'
import type { Database } from '../store/schema.js'
import { hasStrayLog } from '../store/sqlite/connection.js'
import { openDatabase } from '../store/sqlite/dialect.js'
import { AS_ITS_USER, isOfAnotherUser, isSystemRefusal, refusalText } from '../system-refusal.js'
import { counted, type Finding, fail, ok, warn } from './finding.js'
import { newestBackup } from './machine.js'

/** The database, to be looked at; or why it can't be. */
export function openStored(config: Config, now: number): Kysely<Database> | Finding {
  const { file } = config.database
  try {
    assertDatabase(file, 'read')
    return openDatabase(file, { readOnly: true })
  } catch (error) {
    if (isLatchkeyError(error, 'store_missing')) return missing(config, now)
    if (isLatchkeyError(error, 'store_unavailable') && isSystemRefusal(error.cause)) {
      const todo = isOfAnotherUser(error.cause) ? AS_ITS_USER : 'check database.url'
      return fail('database', `${file} can’t be read, ${refusalText(error.cause)}`, todo)
    }
    return unreadable('database', error)
  }
}

/** Beside a log no start makes a new one. */
function missing(config: Config, now: number): Finding {
  const { file } = config.database
  if (!existsSync(`${file}-wal`) || !hasStrayLog(file)) {
    const todo = 'check database.url; where there never was one, `latchkey serve` makes it'
    return fail('database', `there is none at ${file}`, todo)
  }
  const newest = newestBackup(config, now)
  const backup = newest === null ? '`latchkey restore`' : `the newest: \`latchkey restore ${newest}\``
  const todo = `put the database back, or a backup in its place (${backup}); to begin anew, move the log away`
  return fail('database', `${file} is missing or empty, though its log is there`, todo)
}

const RESTORE = 'stop the daemon, and put a backup in its place: `latchkey restore`'

/** A database that can't be read is something found; anything else is a bug. */
export function unreadable(what: string, error: unknown): Finding {
  if (isLatchkeyError(error, 'store_unavailable')) return fail(what, error.message, RESTORE)
  if (!(error instanceof Error)) throw error
  const detail = `the database can’t be read: ${error.message}`
  if (isStoreBroken(error)) return fail(what, detail, RESTORE)
  if (isStoreBusy(error)) return fail(what, detail, 'look at its disk, and at who owns its files')
  throw error
}

/** Whether this program and the database know the same tables. Nothing else can be read where they don't. */
export async function checkSchema(db: Kysely<Database>): Promise<Finding> {
  try {
    const pending = await pendingMigrations(db)
    if (pending.length === 0) return ok('schema', 'current')
    const todo = 'start the daemon, which takes the steps: `latchkey serve`'
    return warn(
      'schema',
      `older by ${counted(pending.length, 'step')}, of which the first is ${pending[0]}`,
      todo,
    )
  } catch (error) {
    if (!isLatchkeyError(error, 'schema_too_new')) throw error
    return fail('schema', error.message.replace(/\.$/, ''), 'run the Latchkey that wrote it, or a newer one')
  }
}

/** Whether the file is whole. */
export async function checkIntegrity(db: Kysely<Database>, thorough: boolean): Promise<readonly Finding[]> {
  const faults = await engineOf(db).findDamage(db, { thorough })
  const [first] = faults
  if (first === undefined) return [ok('integrity', thorough ? 'sound, indexes included' : 'sound')]
  const detail = `damaged, in ${counted(faults.length, 'place')} at least: ${first}`
  return [fail('integrity', detail, RESTORE)]
}

const READ_ANEW = 'restore a backup; `latchkey replay` reads them anew where their bodies are there'
const FOLD_ANEW = 'fold them anew: `latchkey rebuild`'

/** Whether what was understood of every event, and the state of every source, can be read. Reads all of them. */
export async function checkStoredForms(db: Kysely<Database>): Promise<readonly Finding[]> {
  const events = await readEventForms(db)
  const sources = await readSourceForms(db)
  // In the order in which they are mended: a replay needs the state of each source that it touches.
  const found = [
    ...unreadableForms('source', sources, FOLD_ANEW),
    ...unreadableForms('event', events, READ_ANEW),
  ]
  if (found.length > 0) return found
  const all = `${counted(events.read, 'event')} and ${counted(sources.read, 'source')}`
  return [ok('stored forms', `all can be read, of ${all}`)]
}

function unreadableForms(
  noun: string,
  { read, damaged: count, first }: RowCheck,
  todo: string,
): readonly Finding[] {
  if (count === 0) return []
  const more = count > first.length ? `, and ${count - first.length} more` : ''
  const detail = `${count} of ${counted(read, noun)} can’t be read (${first.join(', ')}${more})`
  return [fail('stored forms', detail, todo)]
}

const MEND =
  'look at the disk; to mend it, `latchkey events export`, `latchkey restore` a backup from before, `latchkey import`'

/** Whether what was delivered is stored byte for byte, as its hashes tell. Reads every body. */
export async function checkBodyHashes(db: Kysely<Database>): Promise<readonly Finding[]> {
  const { read, damaged, first } = await compareBodies(db)
  if (damaged === 0) return [ok('body hashes', `none altered, of ${read}`)]
  const detail = `${damaged} of ${read} altered in the database, the first that of ${first[0]}`
  return [fail('body hashes', detail, MEND)]
}

/** Whether every event is stored as its bytes are understood today. Reads every body. */
export async function checkReadings(
  db: Kysely<Database>,
  { endpoints }: Pick<Config, 'endpoints'>,
): Promise<readonly Finding[]> {
  const { read, otherwise, first } = await compareReadings(db, endpointsOf(endpoints))
  if (first === null) return [ok('readings', `as the bytes say, of ${counted(read, 'event')}`)]
  const where = `the first ${first.eventId} in ${first.environment}`
  const detail = `${otherwise} of ${counted(read, 'event')} stored otherwise than the bytes say, ${where}`
  return [warn('readings', detail, 'see what reading them again would change: `latchkey replay --dry-run`')]
}
