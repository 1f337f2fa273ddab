import { type Command, InvalidArgumentError, Option } from 'commander'
import { type LoadedConfig, loadConfig } from '../config/load.js'
import { locateConfig } from '../config/locate.js'
import type { Endpoint } from '../provider/endpoint.js'
import type { Environment } from '../provider/event.js'
import { isUsableId } from '../provider/ids.js'
import type { CliContext } from './context.js'

/** Adds one command to the program. Its action resolves when the work is done, and rejects if it failed. */
export type RegisterCommand = (program: Command, context: CliContext) => void

/** The options that every command has. */
export interface SharedOptions {
  readonly config?: string
  readonly json?: true
}

/** Ends a command's help with an example, and gives it the options that all share. */
export function withSharedOptions(command: Command, ...examples: readonly string[]): Command {
  return command
    .option('--config <path>', 'the config file (default: LATCHKEY_CONFIG, or ./config.json)')
    .option('--json', 'answer in JSON, for scripts')
    .addHelpText(
      'after',
      ['', 'Example:', ...examples.map((example) => `  $ latchkey ${example}`)].join('\n'),
    )
}

/** `--environment`, for the commands that it applies to. */
export function environmentOption(
  text = 'which environment (default: live, or the only one configured)',
): Option {
  return new Option('--environment <name>', text).choices(['live', 'sandbox'])
}

/** The command that holds others, such as `keys`; made by whichever of them comes first. */
export function commandGroup(program: Command, name: string, description: string): Command {
  const existing = program.commands.find((command) => command.name() === name)
  return existing ?? program.command(name).description(description)
}

/** Loads the config that the options and the environment name. */
export function loadNamedConfig({ config }: SharedOptions, { env, folder }: CliContext): LoadedConfig {
  return loadConfig({ path: locateConfig({ option: config, env, folder }).path, env })
}

/** The environment that a question is about if nobody says: live, or the only one configured. */
export function defaultEnvironment(endpoints: readonly Endpoint[]): Environment {
  const isSandboxOnly =
    endpoints.length > 0 && endpoints.every(({ environment }) => environment === 'sandbox')
  return isSandboxOnly ? 'sandbox' : 'live'
}

// With an offset, since a time without one means something else on every machine.
const INSTANT = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/

/** Reads an option like `--at 2026-01-31T00:00:00Z` into epoch milliseconds. A date alone is its midnight, UTC. */
export function parseInstant(text: string): number {
  const instant = INSTANT.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(instant))
    throw new InvalidArgumentError('It is no ISO 8601 time, such as 2026-01-31T00:00:00Z.')
  return instant
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
