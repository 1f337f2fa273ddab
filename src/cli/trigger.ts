import { createHash, randomBytes } from 'node:crypto'
import { type Command, Help, InvalidArgumentError, Option } from 'commander'
import type { Config } from '../config/schema.js'
import { ERROR_CODES, type ErrorCode, LatchkeyError } from '../errors.js'
import { nearestName } from '../handlers/nearest-name.js'
import type { Disposition, Receipt } from '../ingest/delivery.js'
import type { Endpoint } from '../provider/endpoint.js'
import type { Generation, ProvenRail } from '../provider/event.js'
import { buildSampleEvent, findSampleType, SAMPLE_TYPES, sampleTypes } from '../provider/sample-event.js'
import { signBody } from '../provider/signature.js'
import { jsonLine, parseId, parseInstant, withSharedOptions } from './command.js'
import { type CliContext, loadNamedConfig, type SharedOptions } from './context.js'

interface TriggerOptions extends SharedOptions, EndpointChoice, IdOptions {
  readonly generation?: Generation
  readonly rail: ProvenRail
  readonly at?: number
  readonly count: number
  readonly url?: string
}

const MAX_COUNT = 100_000
const LEFT_OUT = 'left out where --payment or --subscription names something known already'

/** What to know of a delivery that was taken in and has no effect yet. */
const HINTS: Readonly<Record<Disposition, string | null>> = {
  applied: null,
  ignored: null,
  held: 'held: it waits for its customer, its product or a proof of its rail; name them with --customer, --product, --rail',
  quarantined: "quarantined: kept, and not usable; the daemon's log says why",
  duplicate: null,
}

/** `latchkey trigger`: signs a sample event and delivers it to the running daemon, as the provider would. */
export function triggerCommand(program: Command, context: CliContext): void {
  withSharedOptions(
    program.command('trigger').addHelpText('after', sampleTypesText()),
    'trigger payment.authorized --customer cus_1 --product pro_1',
    'trigger payment.refunded --customer cus_1 --product pro_1',
  )
    .description('sign a sample event and send it to the running daemon')
    .argument('<type>', 'the event type, such as payment.authorized')
    .addOption(new Option('--generation <generation>', 'as which generation').choices(['v2', 'v3']))
    .option('--customer <id>', `about which customer (default: cus_test; ${LEFT_OUT})`, parseId)
    .option('--product <id>', `about which product (default: pro_test; ${LEFT_OUT})`, parseId)
    .option('--payment <id>', 'about which payment (default: follows from customer and product)', parseId)
    .option('--subscription <id>', 'about which subscription', parseId)
    .addOption(new Option('--rail <rail>', 'how it was paid').choices(['card', 'crypto']).default('card'))
    .option('--at <time>', 'when it happened (default: now)', parseInstant)
    .option('--endpoint <name>', 'to which endpoint (default: the first of the sandbox)')
    .option('--live', 'to a live endpoint: changes live access')
    .option('--count <n>', 'how many, each about a payment of its own', parseCount, 1)
    .option('--url <url>', 'where the daemon takes webhooks (default: as configured)', parseUrl)
    .action((type: string, options: TriggerOptions) => trigger(type, options, context))
}

async function trigger(type: string, options: TriggerOptions, context: CliContext): Promise<void> {
  const { config } = await loadNamedConfig(options, context)
  const endpoint = chooseEndpoint(config, options)
  const url = options.url ?? webhooksUrl(config)
  requireSampleType(type, options.generation)
  const ids = chooseIds(type, options)
  const hints = new Set<string>()

  for (let index = 0; index < options.count; index += 1) {
    const sentAt = context.now()
    const about = numbered(ids, index, options.count)
    const { body, event } = buildSampleEvent({
      type,
      ...(options.generation === undefined ? {} : { generation: options.generation }),
      eventId: `evt_${randomBytes(12).toString('hex')}`,
      createdAt: options.at ?? sentAt,
      environment: endpoint.environment,
      rail: options.rail,
      ...about,
    })
    const secret = currentSecret(endpoint, sentAt)
    const receipt = await sendDelivery({ url, endpoint: endpoint.name, secret, sentAt, event, body })
    const { paymentId, subscriptionId } = about
    const line = { type: event, id: receipt.id, paymentId, subscriptionId, disposition: receipt.disposition }
    context.out(options.json ? jsonLine(line) : sentLine(event, about, receipt))
    const hint = HINTS[receipt.disposition]
    if (hint !== null) hints.add(hint)
  }
  if (!options.json) for (const hint of hints) context.err(`${hint}\n`)
}

/** `payment.authorized  evt_1  pay_1  sub_1  applied`. */
function sentLine(
  event: string,
  { paymentId, subscriptionId }: SampleIds,
  { id, disposition }: Receipt,
): string {
  const parts = [event, id, paymentId, subscriptionId, disposition]
  return `${parts.filter((part) => part !== null).join('  ')}\n`
}

function parseCount(text: string): number {
  const count = /^[1-9][0-9]*$/.test(text) ? Number(text) : 0
  if (count < 1 || count > MAX_COUNT) throw new InvalidArgumentError(`It must be 1 to ${MAX_COUNT}.`)
  return count
}

function parseUrl(text: string): string {
  if (!URL.canParse(text) || !/^https?:/.test(text))
    throw new InvalidArgumentError('It must be an http address.')
  return text.replace(/\/+$/, '')
}

const LINE_WIDTH = 78

/** Every type that can be sent, for the help. */
function sampleTypesText(): string {
  return [...typeLines('v3', 'Event types of v3:'), ...typeLines('v2', 'Event types of v2:')].join('\n')
}

function typeLines(generation: Generation, heading: string): string[] {
  const wrapped = new Help().boxWrap(SAMPLE_TYPES[generation].join(', '), LINE_WIDTH)
  return ['', heading, ...wrapped.split('\n').map((line) => `  ${line}`)]
}

/** Throws `usage`, with the type that was probably meant, for one that the generation does not send. */
function requireSampleType(type: string, generation: Generation | undefined): void {
  if (findSampleType(type, generation) !== undefined) return
  const nearest = nearestName(type, sampleTypes(generation))
  const where = generation ? `${generation} ` : ''
  const question = nearest === null ? '' : ` Did you mean ${nearest}?`
  throw new LatchkeyError(
    'usage',
    `there is no ${where}event type ${JSON.stringify(type)}.${question} \`latchkey trigger --help\` lists them all`,
  )
}

interface EndpointChoice {
  readonly endpoint?: string
  readonly live?: true
}

/**
 * The endpoint that a sample goes to: a sandbox one unless `--live` says otherwise, so that
 * nobody gets live access by a slip. Throws `usage`.
 */
function chooseEndpoint({ endpoints }: Config, { endpoint: name, live }: EndpointChoice): Endpoint {
  const environment = live ? 'live' : 'sandbox'
  if (name === undefined) {
    const first = endpoints.find((endpoint) => endpoint.environment === environment)
    if (first !== undefined) return first
    const advice = live
      ? 'add one to the config'
      : 'add one to the config, or say --live to change live access'
    throw new LatchkeyError('usage', `no ${environment} endpoint is configured: ${advice}`)
  }
  const named = endpoints.find((endpoint) => endpoint.name === name)
  if (named === undefined) {
    const names = endpoints.map((endpoint) => endpoint.name).join(', ') || 'none'
    throw new LatchkeyError('usage', `there is no endpoint ${JSON.stringify(name)}; configured: ${names}`)
  }
  if (named.environment !== environment) {
    const advice = live ? 'leave out --live' : 'say --live too, if live access is to change'
    throw new LatchkeyError('usage', `the endpoint ${name} is ${named.environment}: ${advice}`)
  }
  return named
}

/** The first of the endpoint's secrets that still counts. Throws `usage` if all have been rotated out. */
function currentSecret({ name, secrets }: Endpoint, now: number): string {
  const current = secrets.find(({ notAfter }) => notAfter === null || now < notAfter)
  if (current !== undefined) return current.secret
  throw new LatchkeyError('usage', `every secret of the endpoint ${name} has passed its notAfter`)
}

// A wildcard is an address to listen on; the same machine is reached at its loopback address.
const LOOPBACK_OF: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' }

/** Where the running daemon takes webhooks. Throws `usage` where the config leaves the port to the system. */
function webhooksUrl({ server }: Config): string {
  const { host, port } = server.webhooks ?? server
  if (port === 0)
    throw new LatchkeyError('usage', 'the config leaves the port to the system: name the daemon with --url')
  const reached = LOOPBACK_OF[host] ?? host
  return `http://${reached.includes(':') ? `[${reached}]` : reached}:${port}`
}

/** What a sample is about; null leaves the field out, for the daemon to know already. */
interface SampleIds {
  readonly customerId: string | null
  readonly productId: string | null
  readonly paymentId: string | null
  readonly subscriptionId: string | null
}

interface IdOptions {
  readonly customer?: string
  readonly product?: string
  readonly payment?: string
  readonly subscription?: string
}

const TEST_CUSTOMER = 'cus_test'
const TEST_PRODUCT = 'pro_test'

/**
 * Fills in what the options leave open. Payment and subscription follow from customer and product, so
 * that a later `payment.refunded` of the same two is about the same payment. A payment or subscription
 * that is named brings its own customer and product.
 */
export function chooseIds(type: string, options: IdOptions): SampleIds {
  const isKnown = options.payment !== undefined || options.subscription !== undefined
  const customer = options.customer ?? TEST_CUSTOMER
  const product = options.product ?? TEST_PRODUCT
  const subject = subjectOf(type)

  const ownSubscription = subject === 'subscription' ? `sub_${digest(customer, product)}` : null
  // Of a named subscription only a payment event needs a payment: a subscription event may be about none.
  const ownPayment =
    subject === 'payment' || (subject === 'subscription' && options.subscription === undefined)
      ? `pay_${digest(customer, product, options.subscription ?? '')}`
      : null
  return {
    customerId: options.customer ?? (isKnown ? null : customer),
    productId: options.product ?? (isKnown ? null : product),
    paymentId: options.payment ?? ownPayment,
    subscriptionId: options.subscription ?? ownSubscription,
  }
}

/** Of a series, each event is about a payment of its own. */
export function numbered(ids: SampleIds, index: number, count: number): SampleIds {
  if (ids.paymentId === null || count === 1) return ids
  return { ...ids, paymentId: `${ids.paymentId}_${index + 1}` }
}

/** Read off the type's name in either generation. */
function subjectOf(type: string): 'payment' | 'subscription' | 'other' {
  if (/^subscription[._]/i.test(type)) return 'subscription'
  return /^(payment|partial|checkout)(\.|_(?!method))/i.test(type) ? 'payment' : 'other'
}

function digest(...parts: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 12)
}

interface SignedSample {
  /** The daemon's address, without a path. */
  readonly url: string
  readonly endpoint: string
  readonly secret: string
  /** Epoch milliseconds, for the signature. */
  readonly sentAt: number
  readonly event: string
  readonly body: string
}

/** Longer than the daemon may take to answer that it could not store the delivery. */
const ANSWER_TIMEOUT_MS = 10_000

/** Delivers as the provider does. Throws `daemon_unreachable`, or the code that the daemon answered. */
async function sendDelivery({ url, endpoint, secret, sentAt, event, body }: SignedSample): Promise<Receipt> {
  const timestamp = String(Math.floor(sentAt / 1000))
  const response = await post(`${url}/webhooks/${endpoint}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-webhook-event': event,
      'x-webhook-timestamp': timestamp,
      'x-webhook-signature': signBody(secret, timestamp, Buffer.from(body)),
    },
    body,
  })
  const answer = await readAnswer(response)
  if (response.status === 200 && 'disposition' in answer) return answer as unknown as Receipt
  throw refusal(url, response.status, answer)
}

async function post(url: string, request: RequestInit): Promise<Response> {
  try {
    return await fetch(url, {
      ...request,
      redirect: 'manual',
      signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
    })
  } catch (error) {
    const message = `no daemon answers at ${new URL(url).origin}: start one with \`latchkey serve\``
    throw new LatchkeyError('daemon_unreachable', message, { cause: error })
  }
}

async function readAnswer(response: Response): Promise<Readonly<Record<string, unknown>>> {
  try {
    return Object(await response.json()) as Readonly<Record<string, unknown>>
  } catch {
    return {}
  }
}

function refusal(
  url: string,
  status: number,
  { code, detail }: Readonly<Record<string, unknown>>,
): LatchkeyError {
  const known = ERROR_CODES.find((known) => known === code) satisfies ErrorCode | undefined
  const said = [code, detail].filter((part) => typeof part === 'string').join(': ')
  const message = `${url} answered ${status}${said === '' ? ', which is not what a daemon answers' : ` ${said}`}`
  return new LatchkeyError(known ?? 'daemon_unreachable', message)
}
