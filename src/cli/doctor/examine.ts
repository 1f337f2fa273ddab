import type { Kysely } from 'kysely'
import type { LoadedConfig } from '../../config/load.js'
import { readGaps } from '../../operations/delivery-gaps.js'
import type { Database } from '../../store/schema.js'
import { checkBackup } from './check-backup.js'
import { checkBodyHashes } from './check-body-hashes.js'
import { checkClock } from './check-clock.js'
import { checkConfig, checkTargets } from './check-config.js'
import { checkDaemon, type ExaminedDaemon } from './check-daemon.js'
import { checkDisk, checkLog } from './check-disk.js'
import { checkDeliveries, checkRefusals, checkSecrets } from './check-endpoints.js'
import { checkEvents } from './check-events.js'
import { checkFiles } from './check-files.js'
import { checkPolicy } from './check-policy.js'
import { checkPrivacy } from './check-privacy.js'
import { checkReadings } from './check-readings.js'
import { checkIntegrity, checkSchema } from './check-schema.js'
import { checkStoredForms } from './check-stored-forms.js'
import { checkSync } from './check-sync.js'
import type { Finding } from './finding.js'
import { openStored, unreadable } from './open-stored.js'

export interface Examination extends LoadedConfig {
  /** Compares the indexes with their tables too, and every body with its hash and with what is stored of it. */
  readonly thorough: boolean
  /** Epoch milliseconds. */
  readonly clock: () => number
}

/** Looks at everything in turn, and tells of each as soon as it is known. Changes nothing. */
export async function* examine(examination: Examination): AsyncGenerator<Finding> {
  const { config, warnings, clock } = examination
  yield* checkConfig(config, warnings)
  yield* checkFiles(config)
  const daemon = await checkDaemon(config)
  yield daemon.finding
  yield* checkSecrets(config.endpoints, clock())
  if (daemon.facts !== null) yield* checkRefusals(config.endpoints, daemon.facts)
  yield* examineStore(examination, daemon)
  yield* checkBackup(config, clock())
  yield* checkTargets(config)
}

async function* examineStore(examination: Examination, daemon: ExaminedDaemon): AsyncGenerator<Finding> {
  const { config, thorough, clock } = examination
  const db = openStored(config, clock())
  if ('level' in db) return yield db
  try {
    const [schema] = await attempt('schema', async () => [await checkSchema(db)])
    if (schema !== undefined) yield schema
    yield* await attempt('integrity', () => checkIntegrity(db, thorough))
    yield* checkLog(config.database.file)
    // What its tables mean is known for the current schema alone.
    if (schema?.level !== 'ok') return
    for (const [what, check] of storeChecks(db, examination, daemon)) yield* await attempt(what, check)
  } finally {
    await db.destroy()
  }
}

type Check = () => Promise<readonly Finding[]>
type NamedCheck = readonly [what: string, check: Check]

function storeChecks(
  db: Kysely<Database>,
  { config, thorough, clock }: Examination,
  { facts, isServed }: ExaminedDaemon,
): readonly NamedCheck[] {
  return [
    ['disk', () => checkDisk(db, config.database.file, clock())],
    ['clock', () => checkClock(db, facts, clock())],
    ['deliveries', async () => checkDeliveries(config.endpoints, await readGaps(db, clock()))],
    ['events', () => checkEvents(db, clock())],
    ...(thorough ? thoroughChecks(db, config) : []),
    ['policy', () => checkPolicy(db, config)],
    ['privacy', () => checkPrivacy(db, config, isServed, clock())],
    ['sync', () => checkSync(db, config, clock())],
  ]
}

function thoroughChecks(db: Kysely<Database>, config: Examination['config']): readonly NamedCheck[] {
  return [
    ['body hashes', () => checkBodyHashes(db)],
    ['stored forms', () => checkStoredForms(db)],
    ['readings', () => checkReadings(db, config)],
  ]
}

async function attempt(what: string, check: Check): Promise<readonly Finding[]> {
  try {
    return await check()
  } catch (error) {
    return [unreadable(what, error)]
  }
}
