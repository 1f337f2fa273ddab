import { Worker } from 'node:worker_threads'
import type { LoadedConfig } from '../config/load.js'
import { issueLine } from '../errors.js'
import type { SyncStatusJson } from '../handlers/sync.js'
import { readGaps } from '../operations/delivery-gaps.js'
import { threadFile } from '../package-file.js'
import type { Db } from '../store/schema.js'
import { checkBackfills } from './backfills.js'
import { checkClock, checkDeliveries, checkEvents, checkRefusals, checkSecrets } from './deliveries.js'
import { type DaemonFacts, type Finding, ok, warn } from './finding.js'
import { checkBackup, checkDisk, checkFiles, checkKeys, checkLog } from './machine.js'
import {
  checkBodyHashes,
  checkIntegrity,
  checkSchema,
  checkServer,
  openStored,
  unreadable,
} from './stored.js'
import { checkSync } from './sync.js'
import { checkPolicy, checkPrivacy } from './upkeep.js'

/** What is known of the daemon. */
export interface ExaminedDaemon {
  readonly finding: Finding
  /** Null if no daemon answers. */
  readonly facts: DaemonFacts | null
  /** Whether a process uses the database; true also if that is unknown. */
  readonly isServed: boolean
  readonly isRebuilding: boolean
}

export interface Examination extends LoadedConfig {
  /** Also compares the indexes with their tables, and every body with its hash. */
  readonly thorough: boolean
  /** Epoch milliseconds. */
  readonly clock: () => number
  readonly daemon: ExaminedDaemon
  /** The state of sync. */
  readonly syncOf: (db: Db) => Promise<SyncStatusJson>
}

/** Probable mistakes in the config; a config with problems is not examined. */
export function checkConfig({ config, warnings }: LoadedConfig): readonly Finding[] {
  return [ok('config', config.path), ...warnings.map((issue) => warn('config', issueLine(issue), null))]
}

/** Runs all checks in turn, and yields each finding at once. Changes nothing. */
export async function* examine(examination: Examination): AsyncGenerator<Finding> {
  const { config, warnings, clock, daemon } = examination
  yield* checkConfig({ config, warnings })
  yield* checkFiles(config)
  yield daemon.finding
  yield* checkSecrets(config.endpoints, clock())
  yield* checkKeys(config, clock())
  if (daemon.facts !== null) yield* checkRefusals(config.endpoints, daemon.facts)
  yield* examineStore(examination)
  yield* await checkBackup(config, clock())
  if (config.products.every(({ targets }) => targets.length === 0)) yield ok('sync', 'no targets configured')
}

async function* examineStore(examination: Examination): AsyncGenerator<Finding> {
  const { config, thorough, clock, daemon, syncOf } = examination
  const db = await openStored(config, clock())
  const { file, postgres } = config.database
  if ('level' in db) return yield db
  try {
    const [schema] = await attempt('schema', async () => [await checkSchema(db)])
    if (schema !== undefined) yield schema
    if (postgres === undefined) {
      yield* await attempt('integrity', () => checkIntegrity(db, thorough))
      yield* checkLog(file)
    }
    // The tables can only be read if the schema is the current one.
    if (schema?.level !== 'ok') return
    const checks: Record<string, Check> = {
      ...(postgres === undefined
        ? { disk: async () => checkDisk(file) }
        : { database: () => checkServer(db) }),
      clock: () => checkClock(db, config.endpoints, daemon.facts, clock()),
      deliveries: async () => checkDeliveries(config, await readGaps(db, clock())),
      events: () => checkEvents(db, config, clock()),
      backfills: () => checkBackfills(db, config, clock()),
      ...(thorough && { 'body hashes': () => checkBodyHashes(db) }),
      policy: () => checkPolicy(db, config, daemon.isRebuilding),
      privacy: () => checkPrivacy(db, config, daemon.isServed, clock()),
      sync: async () => checkSync(await syncOf(db), clock()),
    }
    for (const [what, check] of Object.entries(checks)) yield* await attempt(what, check)
  } finally {
    await db.destroy()
  }
}

type Check = () => Promise<readonly Finding[]>

async function attempt(what: string, check: Check): Promise<readonly Finding[]> {
  try {
    return await check()
  } catch (error) {
    return [unreadable(what, error)]
  }
}

/** The input of an examination beside a running daemon, as plain data. */
export interface Examined extends Pick<Examination, 'config' | 'thorough' | 'daemon'> {
  /** Epoch milliseconds. */
  readonly now: number
  /** Null if the store could not be read. */
  readonly sync: SyncStatusJson | null
}

/** The same in a separate thread. */
export function examineApart(examined: Examined): Promise<readonly Finding[]> {
  return new Promise((resolve, reject) => {
    const thread = new Worker(threadFile('doctor/examine-thread'), { workerData: examined })
    thread.on('message', resolve)
    thread.on('error', reject)
    thread.on('exit', () => reject(new Error('the examination ended without a result')))
  })
}
