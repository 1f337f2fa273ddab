import { readFileSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { type Issue, LatchkeyError } from '../errors.js'
import { describeIssue, problemsIn } from '../handlers/problem.js'
import { parseJsonText } from './json-text.js'
import { placeOf, toIssue } from './problems.js'
import { reasonOf, resolveReferences, throwWhereRead } from './references.js'
import { type Config, configSchema, findConflicts, findWarnings } from './schema.js'
import { isPostgres, readOverrides, sqlitePath } from './server.js'

export interface LoadConfigOptions {
  readonly path: string
  /** The config as an object, in place of a file: then the path only says what relative paths are relative to. */
  readonly value?: object | undefined
  /** The source of `${env:NAME}` and the `LATCHKEY_*` overrides. */
  readonly env: Readonly<Record<string, string | undefined>>
  readonly readFile?: (path: string) => string
  /**
   * Whether every reference has to resolve (the default). If not, an unresolved secret or address throws the same
   * `config_invalid` when it is read: most commands need few of them.
   */
  readonly secrets?: 'all' | 'when read'
}

export interface LoadedConfig {
  readonly config: Config
  /** Settings that are allowed but probably mistakes. */
  readonly warnings: readonly Issue[]
}

/**
 * Loads the config file. Throws `config_missing` if there is none, and `config_invalid` with every problem at once:
 * each names its path, and none shows a value, which may be a secret.
 */
export function loadConfig(options: LoadConfigOptions): LoadedConfig {
  const { path, value: given, env, readFile = readText, secrets = 'all' } = options
  const absolute = resolve(path)
  const folder = dirname(absolute)
  const name = given === undefined ? `the config file ${absolute}` : 'the config object'
  const text = given === undefined ? readConfigText(absolute, readFile) : JSON.stringify(given)
  const { value, duplicates, reserved } = parseJsonText(text, absolute)
  const mayLackSecrets = secrets === 'when read'
  const resolved = resolveReferences(value, { env, readFile, folder, mayLackSecrets })
  const { data, error } = configSchema.safeParse(resolved.value, { error: describeIssue })
  const { overrides, problems: wrongOverrides } = readOverrides(env)

  const certain = [...reserved, ...resolved.problems]
  const invalid = error ? problemsIn(error) : []
  const conflicts = findConflicts(resolved.value, [...certain, ...invalid], overrides)
  // Values with a failed reference or a forbidden name are wrong already.
  const known = new Set(certain.map(({ path }) => placeOf(path)))
  const further = [...invalid, ...conflicts].filter(({ path }) => !known.has(placeOf(path)))
  const problems = [...duplicates, ...certain, ...further, ...wrongOverrides]
  if (problems.length > 0 || data === undefined) throw invalidConfig(name, problems.map(toIssue))

  const { server, database, backup, log } = data
  const url = overrides.databaseUrl ?? database.url
  const config: Config = {
    ...data,
    path: given === undefined ? absolute : name,
    server: { ...server, host: overrides.host ?? server.host, port: overrides.port ?? server.port },
    // On PostgreSQL there is no such file: it only says where the local socket is.
    database: isPostgres(url)
      ? { url, file: resolve(folder, 'data/latchkey'), postgres: { ...database, url } }
      : { url, file: resolve(folder, sqlitePath(url)) },
    backup: backup && { ...backup, folder: resolve(folder, backup.folder) },
    log: { level: overrides.logLevel ?? log.level },
  }
  const unchecked = [...resolved.missing.values()].map(({ path, message }) => ({
    path,
    message: `${message}, so it was not checked`,
  }))
  const warnings = [...findWarnings(config), ...unchecked]
  throwWhereRead(config, resolved.missing, (issue) => invalidConfig(name, [issue]))
  return { config, warnings }
}

/** The content of the file. Throws `config_missing`, or `config_invalid` if it can't be read. */
export function readConfigText(path: string, readFile = readText): string {
  try {
    return readFile(path)
  } catch (error) {
    const reason = reasonOf(error)
    if (reason === 'ENOENT') throw new LatchkeyError('config_missing', `there is no config file ${path}`)
    throw new LatchkeyError('config_invalid', `the config file ${path} can't be read (${reason})`, {
      cause: error,
    })
  }
}

function invalidConfig(name: string, issues: readonly Issue[]): LatchkeyError {
  const count = issues.length === 1 ? 'a problem' : `${issues.length} problems`
  return new LatchkeyError('config_invalid', `${name} has ${count}`, { issues })
}

/** A device or a pipe might never end. */
export function readText(path: string): string {
  const found = statSync(path)
  if (!found.isFile() && !found.isDirectory()) throw Object.assign(new Error(path), { code: 'not a file' })
  return readFileSync(path, 'utf8')
}
