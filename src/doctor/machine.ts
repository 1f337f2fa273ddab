import { realpathSync, statfsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Kysely } from 'kysely'
import { readConfigText } from '../config/load.js'
import type { Config } from '../config/schema.js'
import { isExplained } from '../errors.js'
import { backupFileAt, newestBackupAt } from '../operations/backup-folder.js'
import { erasureListOf } from '../people/erasure-list.js'
import { countArrivalsSince } from '../store/deliveries.js'
import { newestSeq } from '../store/event-walk.js'
import { executedMigrations } from '../store/migrate.js'
import type { Database } from '../store/schema.js'
import { AS_ITS_USER, isOfAnotherUser, isSystemRefusal, refusalText } from '../system-refusal.js'
import { bytesText, durationText, type Finding, fail, ok, warn } from './finding.js'

const OTHERS = 0o077
const OTHERS_MAY_WRITE = 0o022
const OTHERS_MAY_ENTER = 0o011

/** Who may read or write the config, the database and the list of erasures, by the modes of the files. */
export function checkFiles(config: Config): readonly Finding[] {
  const { path, database } = config
  const found = [
    checkFile(path, (mode) => {
      if ((mode & OTHERS_MAY_WRITE) !== 0) return ['fail', 'write']
      return holdsSecret(config, readConfigText(path)) ? ['fail', 'read the secrets in'] : ['warn', 'read']
    }),
    ...[database.file, erasureListOf(database.file)].map((file) => checkFile(file, () => ['fail', 'open'])),
  ].filter((finding) => finding !== null)
  return found.length > 0 ? found : [ok('files', 'nobody else may read or write them')]
}

/** Null also where there is no such file: whether there should be one is another check's question. */
function checkFile(path: string, judge: (mode: number) => ['fail' | 'warn', act: string]): Finding | null {
  try {
    const mode = modeOf(path)
    if ((mode & OTHERS) === 0) return null
    const [level, act] = judge(mode)
    // What its folder keeps others from reaching is no failure, whatever its own mode.
    const isShutIn = (modeOf(dirname(realpathSync(path))) & OTHERS_MAY_ENTER) === 0
    const detail = `others may ${act} ${path}, of mode ${(mode & 0o777).toString(8).padStart(4, '0')}`
    return { fail, warn }[isShutIn ? 'warn' : level]('files', detail, `chmod 600 ${path}`)
  } catch (error) {
    if (!isSystemRefusal(error)) throw error
    const todo = isOfAnotherUser(error) ? AS_ITS_USER : 'look at its folder'
    return fail('files', `the mode of ${path} can’t be read, ${refusalText(error)}`, todo)
  }
}

function modeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.mode ?? 0
}

/** Whether the file itself holds a secret, and not a variable or another file. */
function holdsSecret({ endpoints, sync, provider }: Config, text: string): boolean {
  const webhookSecrets = sync.webhook?.secrets ?? []
  const secrets = [
    ...endpoints.flatMap((endpoint) => endpoint.secrets.map((one) => () => one.secret)),
    ...[sync.discord, sync.telegram].flatMap((bot) => (bot === null ? [] : [() => bot.botToken])),
    ...Object.keys(webhookSecrets).map((index) => () => webhookSecrets[Number(index)]),
    ...(provider === null ? [] : [() => provider.apiKey]),
  ]
  return secrets.some((read) => {
    try {
      return text.includes(JSON.stringify(read()))
    } catch {
      // It can't be read here, and so is somewhere else.
      return false
    }
  })
}

const MB = 1024 * 1024
const DAY_MS = 86_400_000

/** With less than this the next burst of deliveries may not fit. */
const FREE_AT_LEAST = 100 * MB
const FREE_BETTER = 500 * MB
const DAYS_BETTER = 7

/** The daemon cuts its log back to 64 MB once it can: one of several times that is being held open. */
const WAL_AT_MOST = 4 * 64 * MB

/** Whether what is to come fits on the disk: the write-ahead log once more, and what a day brings. */
export async function checkDisk(
  db: Kysely<Database>,
  file: string,
  now: number,
): Promise<readonly Finding[]> {
  const { bavail, bsize } = statfsSync(dirname(file))
  const free = bavail * bsize
  const growth = await dayGrowth(db, file, now)
  const needed = Math.max(FREE_AT_LEAST, sizeOf(`${file}-wal`) + (growth ?? 0))
  const ofDay = growth === null ? '' : `, ${bytesText(growth)} of it by what arrived since yesterday`
  const detail = `${bytesText(free)} free, ${bytesText(sizeOf(file))} used${ofDay}`
  const todo = `make room beside ${file}: what does not fit is refused`
  if (free < needed) return [fail('disk', detail, todo)]
  return [
    free < Math.max(FREE_BETTER, DAYS_BETTER * (growth ?? 0))
      ? warn('disk', detail, todo)
      : ok('disk', detail),
  ]
}

/** How long the write-ahead log has grown. */
export function checkLog(file: string): readonly Finding[] {
  const size = sizeOf(`${file}-wal`)
  const detail = `the write-ahead log has ${bytesText(size)}`
  if (size <= WAL_AT_MOST) return [ok('log', detail)]
  return [warn('log', detail, 'something has the database open for long: end it, or start the daemon again')]
}

/**
 * As many bytes as the events of the last day take, at what an event takes on average with all that follows. Null where
 * the database is younger: imports have brought what is of before it, and what arrived is not of a whole day.
 */
async function dayGrowth(db: Kysely<Database>, file: string, now: number): Promise<number | null> {
  const yesterday = now - DAY_MS
  const [first] = await executedMigrations(db)
  if (first === undefined || Date.parse(first.timestamp) > yesterday) return null
  const stored = await newestSeq(db)
  return stored === 0 ? 0 : (sizeOf(file) / stored) * (await countArrivalsSince(db, yesterday))
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0
}

/** A backup takes its time, and one that failed is tried again. */
const LATE = 1.5

/** Whether backups are made as often as the config says. */
export function checkBackup({ backup }: Config, now: number): readonly Finding[] {
  if (backup === null) {
    return [ok('backup', 'none are scheduled; `latchkey backup` makes one')]
  }
  const { folder, everyMs } = backup
  const newestAt = orRefusal(() => newestBackupAt(folder, now))
  if (newestAt instanceof Error) {
    const fix = 'name a folder in backup.folder that the daemon may read and write, or one that it can make'
    return [fail('backup', `none can be made: ${newestAt.message}`, fix)]
  }
  const todo = 'the daemon makes them while it runs; its log says why one failed'
  if (newestAt === null) return [warn('backup', `none in ${folder} yet`, todo)]
  const age = now - newestAt
  const detail = `the newest is ${durationText(age)} old, and one is due every ${durationText(everyMs)}`
  return [age > LATE * everyMs ? fail('backup', detail, todo) : ok('backup', detail)]
}

/** The path of the newest backup; null where there is none, or the folder can't be read. */
export function newestBackup({ backup }: Config, now: number): string | null {
  if (backup === null) return null
  const newestAt = orRefusal(() => newestBackupAt(backup.folder, now))
  return newestAt === null || newestAt instanceof Error ? null : backupFileAt(backup.folder, newestAt)
}

/** What the system said where the folder can't be read, or is none; anything else is a bug. */
function orRefusal<Answer>(ask: () => Answer): Answer | Error {
  try {
    return ask()
  } catch (error) {
    if (error instanceof Error && isExplained(error)) return error
    throw error
  }
}
