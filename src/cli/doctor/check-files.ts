import { statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { readConfigText } from '../../config/load.js'
import type { Config } from '../../config/types.js'
import { AS_ITS_USER, isOfAnotherUser, isSystemRefusal, refusalText } from '../system-refusal.js'
import { type Finding, fail, ok, warn } from './finding.js'

const OTHERS = 0o077
const OTHERS_MAY_WRITE = 0o022

/** What SQLite and the daemon keep beside the database. */
const SIDE_FILES = ['', '-wal', '-shm', '.lock', '.erasures'] as const

/** Who may read or write what holds secrets and people's data, by the modes of the files. */
export function checkFiles(config: Config): readonly Finding[] {
  const { path, database } = config
  const text = readConfigText(path)
  const found = [
    checkConfigFile(path, holdsSecret(config, text)),
    ...secretFiles(path, text).map(checkSecretFile),
    ...checkDatabaseFiles(database.file),
  ].filter((finding) => finding !== null)
  return found.length > 0 ? found : [ok('files', 'nobody else may read or write them')]
}

function checkConfigFile(path: string, isSecret: boolean): Finding | null {
  const mode = openModeOf(path)
  if (mode === null) return null
  if (mayWrite(mode)) return openTo('fail', 'write', path, mode, 600)
  return isSecret
    ? openTo('fail', 'read the secrets in', path, mode, 600)
    : openTo('warn', 'read', path, mode, 600)
}

/** Containers often show secrets to all of their users, of which there is one. */
function checkSecretFile(path: string): Finding | null {
  const mode = openModeOf(path)
  return mode === null ? null : openTo(mayWrite(mode) ? 'fail' : 'warn', 'open', path, mode, 600)
}

/** Who may not look into the folder is told that once, and not that all is well. */
function checkDatabaseFiles(file: string): readonly (Finding | null)[] {
  const folder = dirname(file)
  try {
    return [checkFolder(folder), ...SIDE_FILES.map((suffix) => checkDataFile(`${file}${suffix}`))]
  } catch (error) {
    if (!isSystemRefusal(error)) throw error
    const todo = isOfAnotherUser(error) ? AS_ITS_USER : 'check database.url'
    return [fail('files', `what is in ${folder} can’t be looked at, ${refusalText(error)}`, todo)]
  }
}

function checkFolder(path: string): Finding | null {
  const mode = openModeOf(path)
  if (mode === null) return null
  return mayWrite(mode)
    ? openTo('fail', 'replace what is in', path, mode, 700)
    : openTo('warn', 'look into', path, mode, 700)
}

function checkDataFile(path: string): Finding | null {
  const mode = openModeOf(path)
  return mode === null ? null : openTo('fail', 'open', path, mode, 600)
}

function openTo(level: 'warn' | 'fail', act: string, path: string, mode: number, right: number): Finding {
  const detail = `others may ${act} ${path}, of mode ${mode.toString(8).padStart(4, '0')}`
  return { warn, fail }[level]('files', detail, `chmod ${right} ${path}`)
}

function mayWrite(mode: number): boolean {
  return (mode & OTHERS_MAY_WRITE) !== 0
}

/**
 * The mode of a file that others than its owner may do something with, else null. Also where there is no such file:
 * whether there should be one is another check's question.
 */
function openModeOf(path: string): number | null {
  const mode = statSync(path, { throwIfNoEntry: false })?.mode ?? 0
  return (mode & OTHERS) === 0 ? null : mode & 0o777
}

function secretFiles(configPath: string, text: string): readonly string[] {
  const names = [...text.matchAll(/\$\{file:([^}]+)\}/g)].map(([, name = '']) => name)
  return [...new Set(names)].map((name) => resolve(dirname(configPath), name))
}

/** Whether a secret stands in the file itself, and not in a variable or another file. */
function holdsSecret({ endpoints, sync, provider }: Config, text: string): boolean {
  const secrets = [
    ...endpoints.flatMap((endpoint) => endpoint.secrets.map(({ secret }) => secret)),
    ...[sync.discord, sync.telegram].flatMap((bot) => (bot === null ? [] : [bot.botToken])),
    ...(sync.webhook?.secrets ?? []),
    ...(provider === null ? [] : [provider.apiKey]),
  ]
  return secrets.some((secret) => text.includes(JSON.stringify(secret)))
}
