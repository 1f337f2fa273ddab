import { type Command, InvalidArgumentError, Option } from 'commander'
import { DURATION_PATTERN, parseDuration } from '../config/duration.js'
import { LatchkeyError } from '../errors.js'
import { isUsableId } from '../provider/ids.js'
import type { Api, ApiOptions, Page } from './api.js'
import type { CliContext, SharedOptions } from './context.js'
import type { PersonWay } from './customers/person.js'
import type { CommandKind } from './find-api.js'
import { listText, type Paint, paintFor } from './text.js'

/**
 * Adds one command to the program. Its action resolves when the work is done, and rejects if the work failed.
 *
 * Every start registers every command, whichever runs. So a command's file imports only what its help and its answers
 * need, and its action imports the rest when it runs.
 */
export type RegisterCommand = (program: Command, context: CliContext) => void

/** Throws `InvalidArgumentError`. */
type Parse<Value> = (text: string, context: CliContext) => Value

/** An option of a command, named by its key: `dryRun` is `--dry-run`. */
interface Declared<Value> {
  readonly about: string
  /** The placeholder of its value in the help, such as `<id>`; null: it has none. */
  readonly placeholder: string | null
  readonly parse?: Parse<Value>
  readonly choices?: readonly string[]
  readonly fallback?: Value
  readonly isRequired?: boolean
}

export const flag = (about: string): Declared<true | undefined> => ({ about, placeholder: null })

export function value(placeholder: string, about: string): Declared<string | undefined>
export function value<Value>(
  placeholder: string,
  about: string,
  parse: Parse<Value>,
): Declared<Value | undefined>
export function value<Value>(placeholder: string, about: string, parse?: Parse<Value>) {
  return { about, placeholder, ...(parse && { parse }) }
}

/** One of a few words. */
export const choice = <const Word extends string>(
  placeholder: string,
  about: string,
  choices: readonly Word[],
): Declared<Word | undefined> => ({ about, placeholder, choices })

/** Any of a few words. */
export const someOf = <const Word extends string>(
  placeholder: string,
  about: string,
  choices: readonly Word[],
) => ({ about, placeholder, choices }) as Declared<unknown> as Declared<readonly Word[] | undefined>

export const required = <Value>(option: Declared<Value | undefined>): Declared<Value> =>
  ({ ...option, isRequired: true }) as Declared<Value>

export const withDefault = <Value>(option: Declared<Value | undefined>, fallback: Value): Declared<Value> =>
  ({ ...option, fallback }) as Declared<Value>

/** A parser of what `read` takes; it answers null to all else. */
export function parser<Value>(expected: string, read: Parse<Value | null>): Parse<Value> {
  return (text, context) => {
    const found = read(text, context)
    if (found !== null) return found
    throw new InvalidArgumentError(`Expected ${expected}.`)
  }
}

const usableId = (text: string): string | null => (isUsableId(text) ? text : null)
const parseEmail = parser('an email address', usableId)
/** Reads an argument or option with the id of a customer, a product or anything else. */
export const parseId = parser('an id: 1 to 255 characters, without control characters', usableId)

// With an offset, since a time without one means something else on every machine.
const INSTANT = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/

/** Epoch milliseconds; null if it is not an instant. A date alone is its midnight, UTC. */
export function instantIn(text: string): number | null {
  const instant = INSTANT.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(instant) ? null : instant
}

/** Reads an option like `--at 2026-01-31T00:00:00Z`. */
export const parseInstant = parser('an ISO 8601 time, such as 2026-01-31T00:00:00Z', instantIn)

/** Reads an instant, or a duration that ends, or ended, at one. @param direction 1: from now on; -1: until now */
export function instantFrom(text: string, now: number, direction: 1 | -1): number | null {
  return DURATION_PATTERN.test(text) ? now + direction * parseDuration(text) : instantIn(text)
}

/** Refuses a stretch of time that ends before it begins. Throws `usage`. */
export function checkStretch({ options }: { options: Readonly<Record<'from' | 'to', number | undefined>> }) {
  const { from, to } = options
  if (from !== undefined && to !== undefined && from > to)
    throw new LatchkeyError('usage', '--from is later than --to')
}

/** Reads a duration in milliseconds; none is 0. */
export const parseGrace = parser('a duration such as 24h, or none', (text) =>
  text === 'none' ? 0 : DURATION_PATTERN.test(text) ? parseDuration(text) : null,
)

/** The form that the API takes. */
export function isoTime(instant: number | undefined): string | undefined {
  return instant === undefined ? undefined : new Date(instant).toISOString()
}

export function parseBetween(least: number, most: number) {
  return parser(`a whole number from ${least} to ${most}`, (text) => {
    const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
    return number >= least && number <= most ? number : null
  })
}

/** How many a list shows. @param most the API's maximum page size, by default */
export const limitTo = (fallback: number, most = LISTED) =>
  withDefault(value('<n>', `how many at most, 1 to ${most}`, parseBetween(1, most)), fallback)

/** The API's maximum page size. */
export const LISTED = 100

/** Names the daemon to ask. */
export const DAEMON = {
  url: value('<url>', 'the daemon to ask, with the key in LATCHKEY_API_KEY (default: the local one)'),
}

type OptionTable = Readonly<Record<string, Declared<unknown>>>
export type ValuesOf<Table> = {
  readonly [Name in keyof Table]: Table[Name] extends Declared<infer Value> ? Value : never
}

/** Ways to name a customer other than by id, in every command that names one. */
const PERSON_OPTIONS = {
  email: value('<email>', 'the customer with this email, instead of an id', parseEmail),
  ref: value('<text>', 'the customer with this reference from your app, instead of an id', parseId),
  payment: value('<id>', 'the customer of this payment, instead of an id', parseId),
  subscription: value('<id>', 'the customer of this subscription, instead of an id', parseId),
} satisfies Readonly<Record<PersonWay, Declared<string | undefined>>>
const PERSON_WAYS = Object.keys(PERSON_OPTIONS) as readonly PersonWay[]

interface CommandSpec<Table extends OptionTable, Given> {
  readonly about: string
  /** By default, the words of the command alone. */
  readonly examples?: readonly string[]
  /** Descriptions of its arguments, by name. */
  readonly arguments?: Readonly<Record<string, string>>
  readonly options?: Table
  /** Comes at the end of its help, before the examples. */
  readonly helpEnd?: () => string
  /** True: its arguments are optional for the parser, since an option may name the customer. */
  readonly placesArguments?: boolean
  /** Whether it runs where its group is named alone. */
  readonly isDefault?: true
  readonly run: (given: Given) => Promise<void> | void
}

/** The input of a command. */
export interface GivenCommand<Table extends OptionTable, Shared = SharedOptions> {
  readonly options: ValuesOf<Table> & Shared
  readonly args: readonly string[]
  readonly context: CliContext
  /** Shows the answer as text, or as JSON with `--json`. */
  readonly show: (json: unknown, text: (paint: Paint) => string) => void
}

export type GivenApiCommand<Table extends OptionTable> = GivenCommand<Table, ApiOptions> & {
  readonly api: Api
}

const ARGUMENTS: Readonly<Record<string, string>> = {
  customer: 'the customer id',
  product: 'the product id',
  event: 'the event id',
}

/** Declares a command by its words, such as `grant <customer> <product>` or `policy show`. */
export function command<Table extends OptionTable = Record<never, never>>(
  words: string,
  declared: CommandSpec<Table, GivenCommand<Table>>,
): RegisterCommand {
  const [first = '', ...rest] = words.split(' ')
  const name = isGroup(first) ? rest.shift() : first
  return (program, context) => {
    const one = (isGroup(first) ? commandGroup(program, first) : program)
      .command(name ?? '', { isDefault: declared.isDefault ?? false })
      .description(declared.about)
      .option('--config <path>', 'the config file (default: LATCHKEY_CONFIG, or ./config.json)')
      .option('--json', 'answer in JSON, for scripts')
    for (const argument of rest) {
      const known = argument.slice(1, -1)
      // File names may contain any characters that the system allows.
      const parse = (text: string) => (known === 'file' ? text : parseId(text, context))
      const form = declared.placesArguments ? `[${known}]` : argument
      one.argument(form, declared.arguments?.[known] ?? ARGUMENTS[known], parse)
    }
    if (declared.placesArguments) one.usage(`[options] ${rest.join(' ')}`)
    for (const [key, option] of Object.entries(declared.options ?? {}))
      one.addOption(optionOf(key, option, context))
    if (declared.helpEnd !== undefined) one.addHelpText('after', declared.helpEnd())
    withExamples(one, ...(declared.examples ?? [words]))
    if (declared.isDefault) one.allowExcessArguments()
    one.action(async () => {
      const [unknown] = declared.isDefault ? one.args : []
      if (unknown !== undefined) {
        const todo = `run \`latchkey ${first} --help\` to see them all`
        throw new LatchkeyError('usage', `unknown command '${first} ${unknown}': ${todo}`)
      }
      const options = valuesOf(one, Object.keys(declared.options ?? {})) as ValuesOf<Table> & SharedOptions
      await declared.run({
        options,
        args: one.processedArgs as readonly string[],
        context,
        show: (json, text) => context.out(options.json ? jsonLine(json) : text(paintFor(context))),
      })
    })
  }
}

/** Commander takes `--no-open` for an `open` that is not: here it is `noOpen`, as declared. */
function valuesOf(given: Command, keys: readonly string[]): object {
  const values = given.opts<Record<string, unknown>>()
  const negated = keys.filter((key) => /^no[A-Z]/.test(key))
  return {
    ...values,
    ...Object.fromEntries(negated.map((key) => [key, isNegated(values, key) || undefined])),
  }
}

function isNegated(values: Readonly<Record<string, unknown>>, key: string): boolean {
  return values[`${key.charAt(2).toLowerCase()}${key.slice(3)}`] === false
}

function optionOf(key: string, declared: Declared<unknown>, context: CliContext): Option {
  const { about, placeholder, parse, choices, fallback, isRequired } = declared
  const name = key.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
  const text = isRequired ? `${about} (required)` : about
  const option = new Option(`--${name}${placeholder === null ? '' : ` ${placeholder}`}`, text)
  if (choices !== undefined) option.choices(choices)
  if (parse !== undefined) option.argParser((text: string) => parse(text, context))
  if (fallback !== undefined) option.default(fallback)
  return option.makeOptionMandatory(isRequired ?? false)
}

/**
 * Declares a command that uses the API: of the running daemon, of `--url`, or, if it only asks, over the store. If it
 * has an argument or an option `customer`, options may name that customer in other ways.
 */
export function apiCommand<Table extends OptionTable = Record<never, never>>(
  words: string,
  declared: CommandSpec<Table, GivenApiCommand<Table>> & {
    /** Describes `--environment`; null: there is no such option. */
    readonly environment?: string | null
    /** Ways to name its customer; by default all. */
    readonly personBy?: readonly PersonWay[]
    /** Refuses wrong use before the config is read or the API called. */
    readonly check?: (given: GivenCommand<Table, ApiOptions>) => unknown
    readonly kind: CommandKind | ((options: ValuesOf<Table>) => CommandKind)
  },
): RegisterCommand {
  const { environment, personBy = PERSON_WAYS, check, kind, run, ...facts } = declared
  const places = words.split(' ').filter((word) => /^\W/.test(word))
  const isPlaced = places[0] === '<customer>'
  const ways = isPlaced || 'customer' in (declared.options ?? {}) ? personBy : []
  return command(words, {
    ...facts,
    placesArguments: isPlaced,
    options: {
      ...DAEMON,
      ...Object.fromEntries(ways.map((way) => [way, PERSON_OPTIONS[way]])),
      ...declared.options,
      ...(environment !== null && {
        environment: choice('<name>', environment ?? ENVIRONMENT, ['live', 'sandbox']),
      }),
    },
    async run(all) {
      const parsed = all as unknown as GivenCommand<Table, ApiOptions>
      const named = personIn(parsed, ways)
      const given = isPlaced ? { ...parsed, args: placed(parsed.args, places, named !== null) } : parsed
      await check?.(given)
      const { withApi } = await import('./find-api.js')
      const { options, context } = given
      await withApi(
        options,
        context,
        async (api) =>
          run({
            ...(named === null ? given : await withPerson(given, api, named, isPlaced ? places : null)),
            api,
          }),
        typeof kind === 'function' ? kind(options) : kind,
      )
    },
  })
}

interface NamedPerson {
  readonly way: PersonWay
  readonly text: string
}

/** The customer whom an option names otherwise than by id; null: none does. Throws `usage` for several options. */
function personIn({ options }: { readonly options: object }, ways: readonly PersonWay[]): NamedPerson | null {
  const values = options as Readonly<Partial<Record<PersonWay | 'customer', string>>>
  const given = (['customer', ...ways] as const).filter((name) => values[name] !== undefined)
  const [way, second] = given
  if (second !== undefined)
    throw new LatchkeyError('usage', `--${way} and --${second} both name the customer: leave one out`)
  return way === undefined || way === 'customer' ? null : { way, text: values[way] ?? '' }
}

/** The arguments in their places, the customer's empty if an option names them. Throws `usage`. */
function placed(
  given: readonly (string | undefined)[],
  places: readonly string[],
  isNamed: boolean,
): readonly string[] {
  const args = [...(isNamed ? [''] : []), ...given.filter((one) => one !== undefined)]
  if (args.length > places.length)
    throw new LatchkeyError('usage', 'the customer is named by an id and by an option: leave one out')
  const [missing] = places.slice(args.length).filter((place) => place.startsWith('<'))
  if (missing === undefined) return args
  const ways = PERSON_WAYS.map((way) => `--${way}`).join(', ')
  const hint = args.length === 0 ? `: name one by id, or by one of ${ways}` : ''
  throw new LatchkeyError('usage', `missing required argument '${missing.slice(1, -1)}'${hint}`)
}

/** The same input with the customer's id. @param places of the arguments; null: the customer is an option */
async function withPerson<Given extends GivenCommand<Record<never, never>, ApiOptions>>(
  given: Given,
  api: Api,
  { way, text }: NamedPerson,
  places: readonly string[] | null,
): Promise<Given> {
  const { assertNoPerson, findPerson } = await import('./customers/person.js')
  const customer = await findPerson(api, way, text)
  if (places === null) return { ...given, options: { ...given.options, customer } }
  const product = given.args[places.findIndex((place) => place.slice(1, -1) === 'product')]
  if (product !== undefined) await assertNoPerson(api, way, product, customer)
  return { ...given, args: [customer, ...given.args.slice(1)] }
}

const ENVIRONMENT = 'which environment (default: the only one of the key or the config, else live)'

function withExamples(one: Command, ...examples: readonly string[]): Command {
  const lines = examples.map((example) => `  $ latchkey ${example}`)
  return one.addHelpText('after', ['', 'Example:', ...lines].join('\n'))
}

/** Shows the first page of a list, and says if there is more. */
export async function showPage<Item>(
  path: string,
  query: Parameters<Api['get']>[1] & { readonly limit: number },
  cellsOf: (item: Item) => readonly string[],
  none: string,
  { api, options, context, show }: GivenApiCommand<Record<never, never>>,
): Promise<void> {
  const { items, pagination } = await api.get<Page<Item>>(path, query)
  show({ items, hasMore: pagination.hasMore }, listText(items, cellsOf, none))
  if (pagination.hasMore && !options.json)
    context.err(`note: there are more; these are the first ${query.limit}\n`)
}

export function jsonLine(content: unknown): string {
  return `${JSON.stringify(content)}\n`
}

/** The commands with subcommands, and an example of each. */
const GROUPS = {
  events: { description: 'the stored events', example: 'events list --disposition held' },
  keys: {
    description: 'the API keys in the config file',
    example: 'keys create --name app --scope read --environment live',
  },
  endpoints: {
    description: 'the webhook endpoints, at the payments service and in the config file',
    example: 'endpoints register --url https://hooks.example.com/webhooks/v3',
  },
  config: { description: 'the config file', example: 'config check' },
  policy: { description: 'what grants and revokes access', example: 'policy diff' },
  sandbox: {
    description: 'the payments service on this machine, to try things out',
    example: 'sandbox advance 30d',
  },
  sync: {
    description: 'roles and groups that follow access, and the outbound webhooks',
    example: 'sync status --state parked',
  },
} as const

function isGroup(word: string): word is keyof typeof GROUPS {
  return word in GROUPS
}

/** A command with subcommands; the first subcommand creates it. */
function commandGroup(program: Command, name: keyof typeof GROUPS): Command {
  const existing = program.commands.find((one) => one.name() === name)
  if (existing !== undefined) return existing
  const { description, example } = GROUPS[name]
  return withExamples(program.command(name).description(description), example)
}
