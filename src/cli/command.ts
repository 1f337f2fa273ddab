import { type Command, InvalidArgumentError, Option } from 'commander'
import { isUsableId } from '../provider/ids.js'
import type { Api, ApiOptions, WhereNone } from './api.js'
import type { CliContext } from './context.js'

/**
 * Adds one command to the program. Its action resolves when the work is done, and rejects if it failed.
 *
 * Every start registers every command, whichever is asked for: a command's own file therefore imports what says what
 * there is and how answers read, and its action what the work needs, at the moment when it is run.
 */
export type RegisterCommand = (program: Command, context: CliContext) => void

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

/** A command that asks the API. */
export interface ApiCommand<Options> {
  readonly about: string
  readonly examples: readonly string[]
  /** What else its arguments are, by their names. */
  readonly arguments?: Readonly<Record<string, string>>
  /** What `--environment` is for; null: there is none. */
  readonly environment?: string | null
  /** Its own arguments and options. */
  readonly options?: (command: Command, context: CliContext) => Command
  /** Refuses wrong use, before anything is read or asked. */
  readonly check?: (given: Pick<GivenCommand<Options>, 'options' | 'args' | 'context'>) => unknown
  readonly whereNone?: WhereNone | ((options: Options) => WhereNone)
  readonly run: (given: GivenCommand<Options>) => Promise<void>
}

/** What a command was given, and what it asks. */
export interface GivenCommand<Options> {
  readonly api: Api
  readonly options: Options
  readonly args: readonly string[]
  readonly context: CliContext
  /** Answers in the form that was asked for. */
  readonly show: (json: unknown, text: () => string) => void
}

const ARGUMENTS: Readonly<Record<string, string>> = {
  customer: 'the customer id',
  product: 'the product id',
  event: 'the event id',
}

/**
 * Declares a command by its words, such as `grant <customer> <product>` or `policy show`. What its work needs is loaded
 * when it is run.
 */
export function apiCommand<Options extends ApiOptions>(
  words: string,
  declared: ApiCommand<Options>,
): RegisterCommand {
  const { about, examples, environment, options: addOptions, check, whereNone, run } = declared
  const [first = '', ...rest] = words.split(' ')
  const name = isGroup(first) ? rest.shift() : first
  return (program, context) => {
    const command = (isGroup(first) ? commandGroup(program, first) : program).command(name ?? '')
    withSharedOptions(command, ...examples)
      .description(about)
      .option('--url <url>', 'the daemon to ask, with the key in LATCHKEY_API_KEY (default: the local one)')
    for (const argument of rest) {
      const known = argument.slice(1, -1)
      command.argument(argument, declared.arguments?.[known] ?? ARGUMENTS[known], parseId)
    }
    addOptions?.(command, context)
    if (environment !== null) command.addOption(environmentOption(environment))
    command.action(async () => {
      const options = command.opts<Options>()
      const args = command.processedArgs as readonly string[]
      await check?.({ options, args, context })
      const { withApi } = await import('./api.js')
      const show = (json: unknown, text: () => string): void =>
        context.out(options.json ? jsonLine(json) : text())
      await withApi(
        options,
        context,
        (api) => run({ api, options, args, context, show }),
        typeof whereNone === 'function' ? whereNone(options) : whereNone,
      )
    })
  }
}

/** `--environment`, for the commands that it applies to. */
export function environmentOption(
  text = 'which environment (default: the only one of the key or the config, else live)',
): Option {
  return new Option('--environment <name>', text).choices(['live', 'sandbox'])
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

/** `/customers/cus_1/grants`, each part percent-encoded. */
export function pathOf(...parts: readonly string[]): string {
  return parts.map((part) => `/${encodeURIComponent(part)}`).join('')
}

/** One line of JSON. */
export function jsonLine(value: unknown): string {
  return `${JSON.stringify(value)}\n`
}

/** The commands that hold others, each with one of those as an example. */
const GROUPS = {
  events: { description: 'the stored events', example: 'events list --disposition held' },
  keys: {
    description: 'the API keys in the config file',
    example: 'keys create --name app --scope read --environment live',
  },
  config: { description: 'the config file', example: 'config check' },
  policy: { description: 'what grants and takes back access', example: 'policy diff' },
  sync: {
    description: 'roles and groups that follow access, and the outbound webhook',
    example: 'sync status --state parked',
  },
} as const

function isGroup(word: string): word is keyof typeof GROUPS {
  return word in GROUPS
}

/** A command that holds others; made by whichever of them comes first. */
export function commandGroup(program: Command, name: keyof typeof GROUPS): Command {
  const existing = program.commands.find((command) => command.name() === name)
  if (existing !== undefined) return existing
  const { description, example } = GROUPS[name]
  return withExamples(program.command(name).description(description), example)
}
