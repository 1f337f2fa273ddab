import { randomBytes, randomInt } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { InvalidArgumentError } from 'commander'
import { locateConfig } from '../../config/locate.js'
import { LatchkeyError } from '../../errors.js'
import { isJsonObject } from '../../provider/json.js'
import { isSystemRefusal, refusalText } from '../../system-refusal.js'
import { command, type GivenCommand, parseBetween, parseInstant, value, withDefault } from '../command.js'
import { type CliContext, loadNamedConfig, type SharedOptions } from '../context.js'
import { pathOf } from '../known.js'
import { detailText, linesText, type Paint } from '../text.js'
import { currentSecret, webhooksUrl } from '../trigger.js'
import { askSandbox, readSandboxKey, SANDBOX_ACTS, SANDBOX_PORT, sandboxKeyFile } from './acts.js'
import { type AskSandbox, idOf, productOf } from './named.js'

function parseKey(text: string): string {
  if (/^sk_sandbox_[\w-]+$/.test(text)) return text
  throw new InvalidArgumentError('Expected a key that begins with sk_sandbox_.')
}

const PORT = withDefault(value('<port>', 'the port of the sandbox', parseBetween(0, 65_535)), SANDBOX_PORT)
const KEY = value('<key>', 'its API key, sk_sandbox_… (default: the one in data/sandbox-key.txt)', parseKey)

const START = {
  port: PORT,
  key: KEY,
  from: value('<time>', 'where its clock starts (default: now)', parseInstant),
  file: value('<path>', 'keep its state in this file (default: it forgets everything when it stops)'),
  seed: value(
    '<n>',
    'the same seed gives the same ids and faults (default: a new one)',
    parseBetween(0, 2 ** 31),
  ),
}

const DAY_MS = 24 * 60 * 60 * 1000

/** `latchkey sandbox`: the payments service, delivering to the daemon of the config, until a signal stops it. */
const startCommand = command('sandbox start', {
  about: 'run the payments service on this machine; the same as `latchkey sandbox`',
  examples: ['sandbox start', 'sandbox start --from 2025-10-01 --file data/sandbox.db'],
  options: START,
  isDefault: true,
  async run({ options, context }) {
    const endpoints = await endpointsOf(options, context)
    const keyFile = sandboxKeyFile(options, context)
    const key = options.key ?? readSandboxKey(keyFile) ?? `sk_sandbox_${randomBytes(18).toString('hex')}`
    mkdirSync(dirname(keyFile), { recursive: true, mode: 0o700 })
    const file = options.file === undefined ? undefined : resolve(context.folder, options.file)
    const { startSandbox } = await import('../../sandbox/sandbox.js')
    const sandbox = await startSandbox({
      ...{ key, endpoints: endpoints.map(({ url, secret, generation }) => ({ url, secret, generation })) },
      ...{ port: options.port, seed: options.seed ?? randomInt(2 ** 31), clock: context.now },
      ...(options.from !== undefined && { from: options.from }),
      ...(file !== undefined && { file }),
      onEndpoint: (url, problem) =>
        context.err(
          problem === null
            ? `${url} takes deliveries again\n`
            : `can't deliver to ${url}: ${problem}; \`latchkey sandbox advance 12h\` tries all of them again\n`,
        ),
      report: (error) => context.err(`${error instanceof Error ? error.stack : String(error)}\n`),
    }).catch((cause: unknown) => {
      const message = startRefusal(cause, options.port, file)
      throw message === null ? cause : new LatchkeyError('usage', message, { cause })
    })
    // Only now: if this start fails, the key of the one that runs must stay there.
    writeFileSync(keyFile, `${key}\n`, { mode: 0o600 })
    chmodSync(keyFile, 0o600)
    const delivers = endpoints.map(({ url, generation }) => `delivers to ${url} (${generation})`)
    const near =
      options.from === undefined ? endpoints.filter(({ aheadAtMostMs }) => aheadAtMostMs <= DAY_MS) : []
    context.out(
      options.json
        ? `${JSON.stringify({ url: sandbox.url, key, endpoints: endpoints.map(({ url }) => url) })}\n`
        : linesText([
            `sandbox on ${sandbox.url}`,
            `key ${key} (also in ${keyFile})`,
            ...(delivers.length > 0
              ? delivers
              : [
                  'delivers to nobody: register your app with',
                  '  latchkey sandbox create endpoint --url http://127.0.0.1:3000/webhooks',
                  'or name the config of a daemon with --config',
                ]),
            ...near.map(
              ({ name }) =>
                `mind: the daemon accepts no event of a clock that is moved over a day ahead; set endpoints.${name}.aheadAtMost to "10y", or start with --from in the past`,
            ),
          ]),
    )
    await new Promise<void>((done) => {
      process.once('SIGINT', () => done())
      process.once('SIGTERM', () => done())
    })
    await sandbox.stop()
  },
})

/** What to do about a start that failed; null: nobody knows. */
function startRefusal(error: unknown, port: number, file: string | undefined): string | null {
  const code = error instanceof Error && 'code' in error ? error.code : null
  if (code === 'EADDRINUSE')
    return `something else listens on port ${port}, maybe another sandbox: stop it, or name another port with --port`
  if (code === 'SQLITE_BUSY') return `another sandbox uses ${file}: stop it, or name another file`
  if (code === 'SQLITE_NOTADB' || code === 'NOT_A_SANDBOX')
    return `${file} is not a file of a sandbox: name another one`
  if (file !== undefined && !existsSync(dirname(file)))
    return `there is no folder ${dirname(file)} for the file: make it first`
  const isClosed = ['SQLITE_CANTOPEN', 'EACCES', 'EISDIR', 'EPERM', 'EROFS'].some((one) => one === code)
  return isClosed ? `${file} can't be opened: name a file that you may write` : null
}

/** Each sandbox endpoint of the config, once; one whose name says so hears the legacy generation. No config: none. */
async function endpointsOf(options: SharedOptions, context: CliContext) {
  const { path, named } = locateConfig({ option: options.config, env: context.env, folder: context.folder })
  if (!named && !existsSync(path)) return []
  const { config } = await loadNamedConfig(options, context)
  const own = config.endpoints.filter(({ environment }) => environment === 'sandbox')
  if (own.length === 0) return []
  const base = await webhooksUrl(config)
  return own.map((endpoint) => ({
    ...endpoint,
    url: `${base}${pathOf('webhooks', endpoint.name)}`,
    secret: currentSecret(endpoint, context.now()),
    generation: /legacy|v2/.test(endpoint.name) ? ('v2' as const) : ('v3' as const),
  }))
}

interface Asking extends SharedOptions {
  readonly port: number
  readonly key?: string | undefined
}

/** Does one act of a running sandbox, given as words. @throws {LatchkeyError} `usage`, and those of the sandbox */
async function doAct(
  name: string,
  argument: string,
  given: Readonly<Record<string, string | undefined>>,
  asking: Asking,
  context: CliContext,
) {
  const act = SANDBOX_ACTS[name]
  if (act === undefined) {
    throw new LatchkeyError(
      'usage',
      `there is no ${JSON.stringify(name)}: expected ${Object.keys(SANDBOX_ACTS).join(', ')}`,
    )
  }
  const key = asking.key ?? readSandboxKey(sandboxKeyFile(asking, context))
  if (key === null) {
    throw new LatchkeyError(
      'usage',
      'the key of the sandbox is unknown here: run this beside `latchkey sandbox`, or add --key',
    )
  }
  const ask: AskSandbox = (request) => askSandbox(asking.port, key, request)
  const { product } = given
  const known = product === undefined ? given : { ...given, product: await productOf(ask, product) }
  return ask(act.request(await idOf(ask, act, argument), known))
}

const ARGUMENTS: Readonly<Record<string, string>> = {
  kind: 'product, customer, payment, subscription or endpoint',
  time: 'a duration such as 90s, 15m, 2h or 30d, a date, or a time',
  what: 'an id or an email, or clock, truth, deliveries, faults',
  payment: 'its id; or a subscription or an email, for the newest',
  charged: 'a payment, or a customer by id or email, for every charge of the saved card',
  subscription: 'its id; or an email, for the newest',
}

const actCommands = Object.entries(SANDBOX_ACTS).map(([name, { about, argument, examples, options }]) =>
  command(`sandbox ${name}${argument === null ? '' : ` <${argument}>`}`, {
    about,
    examples,
    ...(argument !== null && { arguments: { [argument]: ARGUMENTS[argument] ?? `the ${argument} id` } }),
    options: {
      ...Object.fromEntries(
        Object.entries(options).map(([option, text]) => [option, value('<value>', text)]),
      ),
      port: PORT,
      key: KEY,
    },
    async run({ options: given, args: [named = ''], context, show }) {
      const data = await doAct(name, named, given as never, given, context)
      show(data ?? null, (paint) => shownText(Object(data), paint))
    },
  }),
)

function shownText(data: { readonly access?: readonly object[] }, paint?: Paint): string {
  return `${detailText(data, paint)}${data.access?.length === 0 ? 'nobody has access\n' : ''}`
}

const STEPS_HELP = `A story is a JSON list of steps, such as
  [{ "run": "create product --every 30", "as": "plan" },
   { "run": "create subscription --product $plan.id --card tok_good", "as": "ada" },
   { "at": "31d", "run": "refund $ada.payment.id" }]
\`at\` counts from the story's beginning; $name.field is what an earlier step answered.`

interface Step {
  readonly at?: string
  readonly run: string
  readonly as?: string
}

const playCommand = command('sandbox play <file>', {
  about: 'play a story: a file of steps, each at its time',
  examples: ['sandbox play examples/sandbox/year-of-a-plan.json'],
  arguments: { file: 'the story' },
  helpEnd: () => `\n${STEPS_HELP}`,
  options: { port: PORT, key: KEY },
  run: play,
})

async function play({
  options,
  args: [file = ''],
  context,
  show,
}: GivenCommand<{ port: typeof PORT; key: typeof KEY }>) {
  const steps = readSteps(resolve(context.folder, file))
  const act = (name: string, argument: string, given = {}) => doAct(name, argument, given, options, context)
  const { now } = (await act('show', 'clock')) as { readonly now: string }
  const answers: Record<string, unknown> = {}
  const played: object[] = []
  for (const step of steps) {
    if (step.at !== undefined) await act('advance', instantOf(step.at, now))
    const [name = '', ...rest] = words(step.run, answers)
    const known = Object.keys(SANDBOX_ACTS[name]?.options ?? {}).map(
      (one) => [one, { type: 'string' }] as const,
    )
    const { values, positionals } = parseStep(step, rest, Object.fromEntries(known))
    const answer = await act(name, positionals[0] ?? '', values)
    if (step.as !== undefined) answers[step.as] = answer
    played.push({ at: step.at ?? '', run: step.run })
    if (options.json) continue
    context.out(`${(step.at ?? '').padEnd(6)}${step.run}\n`)
    if (name === 'show') context.out(shownText(Object(answer)))
  }
  if (options.json) show({ played, answers }, () => '')
}

/** @throws {LatchkeyError} `usage` */
function readSteps(path: string): readonly Step[] {
  try {
    const steps: unknown = JSON.parse(readFileSync(path, 'utf8'))
    if (Array.isArray(steps) && steps.every((one) => isJsonObject(one) && typeof one.run === 'string'))
      return steps
  } catch (error) {
    const reason = isSystemRefusal(error) ? refusalText(error) : 'it is not JSON'
    throw new LatchkeyError('usage', `${path} can't be read as a story: ${reason}`, { cause: error })
  }
  throw new LatchkeyError('usage', `${path} is no story: expected a list of steps, each with "run"`)
}

function parseStep(
  step: Step,
  args: readonly string[],
  options: Record<string, { readonly type: 'string' }>,
) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true })
  } catch (error) {
    throw new LatchkeyError('usage', `the step ${JSON.stringify(step.run)}: ${String(error)}`, {
      cause: error,
    })
  }
}

const UNIT_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** `31d` after the beginning, or an instant as it is. */
function instantOf(at: string, beginning: string): string {
  const [, count, unit = ''] = /^(\d+)([smhd])$/.exec(at) ?? []
  if (count === undefined) return at
  const date = new Date(Date.parse(beginning) + Number(count) * (UNIT_MS[unit] ?? 0))
  if (!Number.isNaN(date.getTime())) return date.toISOString()
  throw new LatchkeyError(
    'usage',
    `"at": ${JSON.stringify(at)} is too far ahead: the clock moves ten years at most`,
  )
}

/** The words of a step; `"two words"` is one. `$name.field` is what an earlier step answered. */
function words(text: string, answers: Readonly<Record<string, unknown>>): readonly string[] {
  const parts = text.match(/"[^"]*"|\S+/g) ?? []
  return parts.map((part) =>
    part.replaceAll('"', '').replaceAll(/\$([\w.]+)/g, (all, path: string) => {
      const found = path
        .split('.')
        .reduce<unknown>((value, name) => (isJsonObject(value) ? value[name] : undefined), answers)
      if (typeof found === 'string' || typeof found === 'number') return String(found)
      throw new LatchkeyError('usage', `${all}: no earlier step answered that`)
    }),
  )
}

export const sandboxCommands = [startCommand, ...actCommands, playCommand]
