import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { LoadConfigOptions, LoadedConfig } from '../config/load.js'
import { locateConfig } from '../config/locate.js'
import type { Endpoint } from '../provider/endpoint.js'
import type { Environment } from '../provider/event.js'

/** What a command knows of its process. The entry point passes it in, so that tests can run commands. */
export interface CliContext {
  readonly env: Readonly<Record<string, string | undefined>>
  /** The current folder, absolute. */
  readonly folder: string
  /** Epoch milliseconds. */
  readonly now: () => number
  /** Whether standard output is a terminal. */
  readonly isTerminal: boolean
  /** Writes to standard output: the answer, bytes unchanged. */
  readonly out: (content: string | Uint8Array) => void
  /** Writes to standard error: errors, and notes for people. */
  readonly err: (text: string) => void
}

/** The context of this process. */
export function processContext(): CliContext {
  return {
    env: process.env,
    folder: process.cwd(),
    now: Date.now,
    isTerminal: process.stdout.isTTY === true,
    out: (content) => void process.stdout.write(content),
    err: (text) => void process.stderr.write(text),
  }
}

/** The options that every command has. */
export interface SharedOptions {
  readonly config?: string | undefined
  readonly json?: true | undefined
}

/** Loads the config that the options and the environment name. A missing secret fails only when it is read. */
export async function loadNamedConfig(
  { config }: SharedOptions,
  { env, folder }: CliContext,
  secrets: LoadConfigOptions['secrets'] = 'when read',
): Promise<LoadedConfig> {
  const { loadConfig } = await import('../config/load.js')
  return loadConfig({ path: locateConfig({ option: config, env, folder }).path, env, secrets })
}

/** The database of a config that may be wrong elsewhere; the default one if the file does not name it. */
export function databaseFileIn({ config: option }: SharedOptions, { env, folder }: CliContext): string {
  const { path } = locateConfig({ option, env, folder })
  const named = existsSync(path)
    ? /"url":\s*"sqlite:(?:\/\/)?([^"]+)"/.exec(readFileSync(path, 'utf8'))?.[1]
    : null
  const file = env.LATCHKEY_DATABASE_URL?.replace(/^sqlite:(\/\/)?/, '') || named || 'data/latchkey.db'
  return resolve(dirname(path), file)
}

/** The default environment: the only one configured, or live. */
export function defaultEnvironment(endpoints: readonly Endpoint[]): Environment {
  const isSandboxOnly =
    endpoints.length > 0 && endpoints.every(({ environment }) => environment === 'sandbox')
  return isSandboxOnly ? 'sandbox' : 'live'
}

export function otherThan(environment: Environment): Environment {
  return environment === 'live' ? 'sandbox' : 'live'
}

/** The version of the package that this program is part of. */
export function packageVersion(): string {
  return String(JSON.parse(readFileSync(packageFile('package.json'), 'utf8')).version)
}

/** A file beside the nearest package.json above: the built program is one folder deeper than its source. */
export function packageFile(name: string, below = fileURLToPath(import.meta.url)): string {
  const folder = dirname(below)
  if (existsSync(join(folder, 'package.json'))) return join(folder, name)
  if (folder === below) throw new Error('there is no package.json above the program')
  return packageFile(name, folder)
}
