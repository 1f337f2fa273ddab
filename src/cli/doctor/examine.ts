import type { Kysely } from 'kysely'
import type { LoadedConfig } from '../../config/load.js'
import { isLatchkeyError } from '../../errors.js'
import { createDeliveryWatch } from '../../ingest/delivery-watch.js'
import { isStoreBroken, isStoreBusy } from '../../store/connection.js'
import { openDatabase } from '../../store/dialect.js'
import type { Database } from '../../store/schema.js'
import { assertDatabase } from '../assert-database.js'
import { AS_ITS_USER, isOfAnotherUser, isSystemRefusal, refusalText } from '../system-refusal.js'
import { checkBackup, checkLost } from './check-backup.js'
import { checkBodyHashes } from './check-body-hashes.js'
import { checkClock } from './check-clock.js'
import { checkConfig, checkTargets } from './check-config.js'
import { checkDaemon } from './check-daemon.js'
import { checkDisk, checkLog } from './check-disk.js'
import { checkDeliveries, checkRefusals, checkSecrets } from './check-endpoints.js'
import { checkErasureList } from './check-erasure-list.js'
import { checkEvents } from './check-events.js'
import { checkFiles } from './check-files.js'
import { checkPolicy } from './check-policy.js'
import { checkPrivacy } from './check-privacy.js'
import { checkIntegrity, checkSchema } from './check-schema.js'
import { checkSync } from './check-sync.js'
import type { DaemonFacts } from './daemon-facts.js'
import { type Finding, fail } from './finding.js'

export interface Examination extends LoadedConfig {
  /** Compares the indexes with their tables too, and every body with its hash. */
  readonly thorough: boolean
  /** Epoch milliseconds. */
  readonly clock: () => number
}

/** Looks at everything in turn, and tells of each as soon as it is known. Changes nothing. */
export async function* examine(examination: Examination): AsyncGenerator<Finding> {
  const { config, warnings, clock } = examination
  yield* checkConfig(config, warnings)
  yield* checkFiles(config)
  const { finding, facts } = await checkDaemon(config)
  yield finding
  yield* checkSecrets(config.endpoints, clock())
  if (facts !== null) yield* checkRefusals(config.endpoints, facts)
  yield* examineStore(examination, facts)
  yield* checkBackup(config, clock())
  yield* checkTargets(config)
}

async function* examineStore(examination: Examination, facts: DaemonFacts | null): AsyncGenerator<Finding> {
  const { file } = examination.config.database
  const db = openStored(file)
  if ('level' in db) return yield db
  try {
    const [schema] = await attempt('schema', async () => [await checkSchema(db)])
    if (schema !== undefined) yield schema
    yield* await attempt('integrity', () => checkIntegrity(db, examination.thorough))
    yield* checkLog(file)
    // What its tables mean is known for the current schema alone.
    if (schema?.level !== 'ok') return
    for (const [what, check] of storeChecks(db, examination, facts)) yield* await attempt(what, check)
  } finally {
    await db.destroy()
  }
}

const RESTORE = 'stop the daemon, and put a backup in its place: `latchkey restore`'

type Check = () => Promise<readonly Finding[]>

function storeChecks(
  db: Kysely<Database>,
  { config, thorough, clock }: Examination,
  facts: DaemonFacts | null,
): readonly (readonly [what: string, check: Check])[] {
  const readGaps = createDeliveryWatch({ db, clock })
  return [
    ['disk', () => checkDisk(db, config.database.file, clock())],
    ['clock', () => checkClock(db, facts, clock())],
    ['deliveries', async () => checkDeliveries(config.endpoints, await readGaps())],
    ['events', () => checkEvents(db, clock())],
    ...(thorough ? ([['body hashes', () => checkBodyHashes(db)]] as const) : []),
    ['policy', () => checkPolicy(db, config)],
    ['lost', () => checkLost(db, config, clock())],
    ['privacy', () => checkPrivacy(db, config, clock())],
    ['erasure list', () => checkErasureList(db, config.database.file)],
    ['sync', () => checkSync(db, config, clock())],
  ]
}

function openStored(file: string): Kysely<Database> | Finding {
  try {
    assertDatabase(file, 'read')
    return openDatabase(file, { readOnly: true })
  } catch (error) {
    if (isLatchkeyError(error, 'store_missing')) {
      const todo = 'check database.url; where there never was one, `latchkey serve` makes it'
      return fail('database', `there is none at ${file}`, todo)
    }
    if (isLatchkeyError(error, 'store_unavailable') && isSystemRefusal(error.cause)) {
      const todo = isOfAnotherUser(error.cause) ? AS_ITS_USER : 'check database.url'
      return fail('database', `${file} can’t be read, ${refusalText(error.cause)}`, todo)
    }
    return unreadable('database', error)
  }
}

async function attempt(what: string, check: Check): Promise<readonly Finding[]> {
  try {
    return await check()
  } catch (error) {
    return [unreadable(what, error)]
  }
}

/** A database that can't be read is something found; anything else is a bug. */
function unreadable(what: string, error: unknown): Finding {
  if (isLatchkeyError(error, 'store_unavailable')) return fail(what, error.message, RESTORE)
  if (!(error instanceof Error)) throw error
  const detail = `the database can’t be read: ${error.message}`
  if (isStoreBroken(error)) return fail(what, detail, RESTORE)
  if (isStoreBusy(error)) return fail(what, detail, 'look at its disk, and at who owns its files')
  throw error
}
