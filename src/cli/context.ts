import { existsSync, readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
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

/** The config file that the options and the environment name, absolute. */
export function configPathOf({ config }: SharedOptions, { env, folder }: CliContext): string {
  return locateConfig({ option: config, env, folder }).path
}

/** Loads the config that the options and the environment name. A missing secret fails only when it is read. */
export async function loadNamedConfig(
  options: SharedOptions,
  context: CliContext,
  secrets: LoadConfigOptions['secrets'] = 'when read',
): Promise<LoadedConfig> {
  const { loadConfig } = await import('../config/load.js')
  return loadConfig({ path: configPathOf(options, context), env: context.env, secrets })
}

/** The database of a config that may be wrong elsewhere; the default place if neither names a SQLite file. */
export function databaseFileIn(options: SharedOptions, context: CliContext): string {
  const { env } = context
  const path = configPathOf(options, context)
  const text = env.LATCHKEY_DATABASE_URL || (existsSync(path) ? readFileSync(path, 'utf8') : '')
  const [, file = 'data/latchkey.db'] = /\bsqlite:(?:\/\/)?([^"]+)/.exec(text) ?? []
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
