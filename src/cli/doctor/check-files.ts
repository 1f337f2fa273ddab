import { existsSync, readdirSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { firstKeyFileOf } from '../../config/first-start.js'
import { readConfigText } from '../../config/load.js'
import type { Config } from '../../config/types.js'
import { BACKUP_NAME } from '../../operations/backup-folder.js'
import { AS_ITS_USER, isOfAnotherUser, isSystemRefusal, refusalText } from '../system-refusal.js'
import { type Finding, fail, ok } from './finding.js'
import { checkAlike, checkDataFile, checkFolder, openFileAt, openTo } from './open-files.js'

/** What SQLite and the daemon keep beside the database, and holds something. */
const SIDE_FILES = ['', '-wal', '-shm', '.erasures'] as const

/** Who may read or write what holds secrets and people's data, by the modes of the files. */
export function checkFiles(config: Config): readonly Finding[] {
  const { path } = config
  const text = readConfigText(path)
  const found = [
    checkConfigFile(path, holdsSecret(config, text)),
    ...secretFiles(path, text).map(checkSecretFile),
    ...checkDataFolder(config),
    ...checkBackups(config),
  ].filter((finding) => finding !== null)
  return found.length > 0 ? found : [ok('files', 'nobody else may read or write them')]
}

function checkConfigFile(path: string, isSecret: boolean): Finding | null {
  const file = openFileAt(path)
  if (file === null) return null
  if (file.mayWrite) return openTo('fail', 'write', file)
  return isSecret ? openTo('fail', 'read the secrets in', file) : openTo('warn', 'read', file)
}

/** Containers often show secrets to all of their users, of which there is one. */
function checkSecretFile(path: string): Finding | null {
  const file = openFileAt(path)
  return file && openTo(file.mayWrite ? 'fail' : 'warn', 'open', file)
}

/** The database, with what is kept beside it: what a restore or an update has replaced, and the first start's key. */
function checkDataFolder({ path, database: { file } }: Config): readonly (Finding | null)[] {
  const folder = dirname(file)
  const firstKey = firstKeyFileOf(path)
  const kept = `${basename(file)}.before-`
  const beside = lookInto(folder, 'check database.url', () => [
    checkFolder(folder),
    ...SIDE_FILES.map((suffix) => checkDataFile(`${file}${suffix}`)),
    checkLockFile(`${file}.lock`),
    checkAlike(
      folder,
      namesIn(folder).filter((name) => name.startsWith(kept)),
      `${kept}*`,
    ),
    checkDataFile(join(folder, basename(firstKey))),
  ])
  if (dirname(firstKey) === folder) return beside
  return [...beside, ...lookInto(dirname(firstKey), 'look at its disk', () => [checkDataFile(firstKey)])]
}

/** There is nothing in it to read; but whoever may write it can hold it, and keep every daemon from starting. */
function checkLockFile(path: string): Finding | null {
  const file = openFileAt(path)
  return file?.mayWrite === true ? openTo('fail', 'hold', file) : null
}

function checkBackups({ backup, database }: Config): readonly (Finding | null)[] {
  if (backup === null) return []
  const { folder } = backup
  return lookInto(folder, 'check backup.folder', () => [
    folder === dirname(database.file) ? null : checkFolder(folder),
    checkAlike(
      folder,
      namesIn(folder).filter((name) => BACKUP_NAME.test(name)),
      'latchkey-*.db',
    ),
  ])
}

/** Who may not look into a folder is told that once, and not that all is well. */
function lookInto(
  folder: string,
  todo: string,
  check: () => readonly (Finding | null)[],
): readonly (Finding | null)[] {
  try {
    return check()
  } catch (error) {
    if (!isSystemRefusal(error)) throw error
    const detail = `what is in ${folder} can’t be looked at, ${refusalText(error)}`
    return [fail('files', detail, isOfAnotherUser(error) ? AS_ITS_USER : todo)]
  }
}

function namesIn(folder: string): readonly string[] {
  return existsSync(folder) ? readdirSync(folder).sort() : []
}

function secretFiles(configPath: string, text: string): readonly string[] {
  const names = [...text.matchAll(/\$\{file:([^}]+)\}/g)].map(([, name = '']) => name)
  return [...new Set(names)].map((name) => resolve(dirname(configPath), name))
}

/** Whether a secret stands in the file itself, and not in a variable or another file. */
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
