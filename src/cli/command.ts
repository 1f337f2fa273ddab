import { type Command, InvalidArgumentError, Option } from 'commander'
import type { LoadConfigOptions, LoadedConfig } from '../config/load.js'
import { locateConfig } from '../config/locate.js'
import type { Endpoint } from '../provider/endpoint.js'
import type { Environment } from '../provider/event.js'
import { isUsableId } from '../provider/ids.js'
import type { CliContext } from './context.js'

/**
 * Adds one command to the program. Its action resolves when the work is done, and rejects if it failed.
 *
 * Every start registers every command, whichever is asked for: a command's own file therefore imports what says what
 * there is and how answers read, and its action what the work needs, at the moment when it is run.
 */
export type RegisterCommand = (program: Command, context: CliContext) => void

/** The options that every command has. */
export interface SharedOptions {
  readonly config?: string
  readonly json?: true
}

/** How a command that may go through a daemon finds it. */
export interface DaemonOptions extends SharedOptions {
  readonly url?: string
}

/** Gives a command the options that all share, and ends its help with examples. */
export function withSharedOptions(command: Command, ...examples: readonly string[]): Command {
  return withExamples(
    command
      .option('--config <path>', 'the config file (default: LATCHKEY_CONFIG, or ./config.json)')
      .option('--json', 'answer in JSON, for scripts'),
    ...examples,
  )
}

/** Ends a command's help with examples. */
export function withExamples(command: Command, ...examples: readonly string[]): Command {
  const lines = examples.map((example) => `  $ latchkey ${example}`)
  return command.addHelpText('after', ['', 'Example:', ...lines].join('\n'))
}

/** Adds `--url`, for the commands that may go through a daemon. */
export function withDaemonOption(command: Command): Command {
  const text = 'the daemon to ask, with the key in LATCHKEY_API_KEY (default: the local one)'
  return command.option('--url <url>', text)
}

/** `--environment`, for the commands that it applies to. */
export function environmentOption(
  text = 'which environment (default: the only one of the key or the config, else live)',
): Option {
  return new Option('--environment <name>', text).choices(['live', 'sandbox'])
}

/** Loads the config that the options and the environment name. A secret that is not there fails what reads it. */
export async function loadNamedConfig(
  { config }: SharedOptions,
  { env, folder }: CliContext,
  secrets: LoadConfigOptions['secrets'] = 'when read',
): Promise<LoadedConfig> {
  const { loadConfig } = await import('../config/load.js')
  return loadConfig({ path: locateConfig({ option: config, env, folder }).path, env, secrets })
}

/** The environment that a question is about if nobody says: the only one configured, or live. */
export function defaultEnvironment(endpoints: readonly Endpoint[]): Environment {
  const isSandboxOnly =
    endpoints.length > 0 && endpoints.every(({ environment }) => environment === 'sandbox')
  return isSandboxOnly ? 'sandbox' : 'live'
}

export function otherThan(environment: Environment): Environment {
  return environment === 'live' ? 'sandbox' : 'live'
}

// With an offset, since a time without one means something else on every machine.
const INSTANT = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/

/** Reads an option like `--at 2026-01-31T00:00:00Z` into epoch milliseconds. A date alone is its midnight, UTC. */
export function parseInstant(text: string): number {
  const instant = instantIn(text)
  if (instant === null)
    throw new InvalidArgumentError('It is no ISO 8601 time, such as 2026-01-31T00:00:00Z.')
  return instant
}

/** The same, and null for what is no instant. */
export function instantIn(text: string): number | null {
  const instant = INSTANT.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(instant) ? null : instant
}

/** Reads an argument or option that names a customer, a product or anything else by its id. */
export function parseId(text: string): string {
  if (isUsableId(text)) return text
  throw new InvalidArgumentError('It is not an id: 1 to 255 characters, none a control character.')
}

/** One line of JSON. */
export function jsonLine(value: unknown): string {
  return `${JSON.stringify(value)}\n`
}
