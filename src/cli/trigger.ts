import { createHash, randomBytes } from 'node:crypto'
import { Help } from 'commander'
import type { Config } from '../config/schema.js'
import { LatchkeyError } from '../errors.js'
import type { StatusJson } from '../handlers/control.js'
import type { Disposition, Receipt } from '../ingest/delivery.js'
import { ofEach } from '../provider/accounts.js'
import type { Endpoint } from '../provider/endpoint.js'
import type { Generation } from '../provider/event.js'
import { WIRE_TYPES, wireTypeOf } from '../provider/event-types.js'
import { isJsonObject } from '../provider/json.js'
import { buildSampleEvent } from '../provider/sample-event.js'
import { signBody } from '../provider/signature.js'
import { ACCOUNT_OPTIONS, accountsNamed } from './acts.js'
import {
  choice,
  command,
  flag,
  jsonLine,
  parseBetween,
  parseId,
  parseInstant,
  parser,
  value,
  withDefault,
} from './command.js'
import { loadNamedConfig } from './context.js'
import { pathOf } from './known.js'
import { jsonIn } from './text.js'

const LEFT_OUT = 'omitted if --payment or --subscription names a known one'

export const parseUrl = parser('an http address', (text) =>
  URL.canParse(text) && /^https?:/.test(text) ? text.replace(/\/+$/, '') : null,
)

const parseMetadata = parser('a JSON object with text values, such as {"plan":"gold"}', (text) => {
  const metadata = jsonIn(text)
  if (!isJsonObject(metadata) || Object.values(metadata).some((one) => typeof one !== 'string')) return null
  return metadata as Readonly<Record<string, string>>
})

/** Notes on a delivery that was accepted but has no effect yet. */
const HINTS: Readonly<Record<Disposition, string | null>> = {
  applied: null,
  ignored: null,
  held: 'held: its customer, product or rail is not known yet; pass --customer, --product or --rail',
  quarantined: "quarantined: stored, but not usable; the daemon's log says why",
  duplicate: null,
}

export const triggerCommand = command('trigger <type>', {
  about: 'sign a sample event and send it to the running daemon',
  examples: [
    'trigger payment.authorized --customer cus_1 --product pro_1',
    'trigger payment.refunded --customer cus_1 --product pro_1',
  ],
  arguments: { type: 'the event type, such as payment.authorized' },
  helpEnd: () => [...typeLines('v3'), ...typeLines('v2')].join('\n'),
  options: {
    generation: choice('<generation>', 'the generation of the event', ['v2', 'v3']),
    customer: value('<id>', `the customer id (default: cus_test; ${LEFT_OUT})`, parseId),
    product: value('<id>', `the product id (default: pro_test; ${LEFT_OUT})`, parseId),
    payment: value('<id>', 'the payment id (default: derived from customer and product)', parseId),
    subscription: value('<id>', 'the subscription id', parseId),
    rail: withDefault(choice('<rail>', 'how it was paid', ['card', 'crypto']), 'card'),
    email: value('<email>', "the customer's email"),
    ...ofEach(ACCOUNT_OPTIONS, (option) =>
      value('<id>', `the customer's ${option} account; only in v2`, parseId),
    ),
    externalRef: value('<text>', "the merchant's reference of the checkout"),
    metadata: value('<json>', 'the metadata of the checkout, an object with text values', parseMetadata),
    periodEnd: value('<time>', 'when the paid period ends (default: in 30 days)', parseInstant),
    cancelAtPeriodEnd: flag('the subscription ends with its paid period; only in v3'),
    amount: value('<cents>', 'the price (default: 1900)', parseBetween(0, 100_000_000)),
    at: value('<time>', 'when it happened (default: now)', parseInstant),
    endpoint: value('<name>', 'the endpoint to use (default: the first of the sandbox)'),
    live: flag('use a live endpoint: changes live access'),
    count: withDefault(
      value('<n>', 'how many events, each for a separate payment', parseBetween(1, 100_000)),
      1,
    ),
    url: value('<url>', 'where the daemon receives webhooks (default: from the config)', parseUrl),
  },
  async run({ options, args: [type = ''], context }) {
    const { config } = await loadNamedConfig(options, context)
    const endpoint = chooseEndpoint(config, options)
    const url = options.url ?? (await webhooksUrl(config))
    const { generation, rail, email, externalRef, metadata, periodEnd, cancelAtPeriodEnd } = options
    const accounts = accountsNamed(options)
    const hasAccount = Object.keys(accounts).length > 0
    assertSendable(type, generation, hasAccount, cancelAtPeriodEnd === true)
    const facts = { rail, email, externalRef, metadata, periodEnd, cancelAtPeriodEnd, accounts }
    const ids = chooseIds(type, options)
    const hints = new Set<string>()

    for (let index = 0; index < options.count; index += 1) {
      const sentAt = context.now()
      const about = numbered(ids, index, options.count)
      const { body, event } = buildSampleEvent({
        type,
        ...(generation && { generation }),
        eventId: `evt_${randomBytes(12).toString('hex')}`,
        createdAt: options.at ?? sentAt,
        environment: endpoint.environment,
        priceCents: options.amount,
        ...facts,
        ...about,
      })
      const secret = currentSecret(endpoint, sentAt)
      const receipt = await sendDelivery(url, endpoint.name, secret, sentAt, { event, body })
      const { paymentId, subscriptionId } = about
      const { id, disposition } = receipt
      const line = { type: event, id, paymentId, subscriptionId, disposition }
      const parts = Object.values(line).filter((part) => part !== null)
      context.out(options.json ? jsonLine(line) : `${parts.join('  ')}\n`)
      const hint = HINTS[disposition]
      if (hint !== null) hints.add(hint)
    }
    if (!options.json) for (const hint of hints) context.err(`${hint}\n`)
  },
})

const LINE_WIDTH = 78

function typeLines(generation: Generation): string[] {
  const wrapped = new Help().boxWrap(WIRE_TYPES[generation].join(', '), LINE_WIDTH)
  return ['', `Event types of ${generation}:`, ...wrapped.split('\n').map((line) => `  ${line}`)]
}

/** @throws {LatchkeyError} `usage` for a type, or a detail of it, that the generation does not send */
function assertSendable(
  type: string,
  generation: Generation | undefined,
  hasAccount: boolean,
  isCanceled: boolean,
): void {
  const found = wireTypeOf(type, generation)
  if (found === undefined) {
    const what = `${generation === undefined ? '' : `${generation} `}event type ${JSON.stringify(type)}`
    throw new LatchkeyError('usage', `there is no ${what}: \`latchkey trigger --help\` lists them all`)
  }
  const isV2 = WIRE_TYPES.v2.includes(found)
  if (hasAccount && !isV2) {
    const advice = 'add --generation v2, or link the account with `latchkey link`'
    throw new LatchkeyError('usage', `${found} of v3 names no account: ${advice}`)
  }
  if (isCanceled && isV2)
    throw new LatchkeyError('usage', `${found} of v2 can't say --cancel-at-period-end: leave it out`)
}

/**
 * The endpoint for a sample: a sandbox one unless `--live` is given, so that a mistake gives nobody live access.
 * Throws `usage`.
 */
export function chooseEndpoint(
  { endpoints }: Config,
  { endpoint: name, live }: { readonly endpoint: string | undefined; readonly live: true | undefined },
): Endpoint {
  const environment = live ? 'live' : 'sandbox'
  if (name === undefined) {
    const first = endpoints.find((endpoint) => endpoint.environment === environment)
    if (first !== undefined) return first
    const advice = live
      ? 'add one to the config'
      : 'add one to the config, or add --live to change live access'
    throw new LatchkeyError('usage', `no ${environment} endpoint is configured: ${advice}`)
  }
  const named = endpoints.find((endpoint) => endpoint.name === name)
  if (named === undefined) {
    const names = endpoints.map((endpoint) => endpoint.name).join(', ') || 'none'
    throw new LatchkeyError('usage', `there is no endpoint ${JSON.stringify(name)}; configured: ${names}`)
  }
  if (named.environment !== environment) {
    const advice = live ? 'leave out --live' : 'add --live to change live access'
    throw new LatchkeyError('usage', `the endpoint ${name} is ${named.environment}: ${advice}`)
  }
  return named
}

/** The first of the endpoint's secrets that has not expired. Throws `usage` if all have. */
export function currentSecret({ name, secrets }: Endpoint, now: number): string {
  const current = secrets.find(({ notAfter }) => notAfter === null || now < notAfter)
  if (current !== undefined) return current.secret
  const message = `every secret of the endpoint ${name} has passed its notAfter: add a current one to the config`
  throw new LatchkeyError('usage', message)
}

/**
 * Where the running daemon says that it takes webhooks: its environment may name another port than the config. If none
 * answers at the local socket, as configured. Throws `usage` if the system chooses the port.
 */
export async function webhooksUrl(config: Config): Promise<string> {
  const { localApi } = await import('./find-api.js')
  const status = await localApi(config)
    .get<StatusJson>('/status')
    .catch(() => null)
  const { host, port } = config.server.webhooks ?? config.server
  const configured = `http://${host.includes(':') ? `[${host}]` : host}:${port}`
  if (status === null && port === 0) {
    const unknown = 'no daemon answers at its local socket, and the config lets the system choose the port'
    throw new LatchkeyError('usage', `${unknown}: pass it with --url`)
  }
  // A wildcard is an address to listen on; the same machine is reached at its loopback address.
  return (status?.listeners.webhooks ?? configured)
    .replace('//0.0.0.0:', '//127.0.0.1:')
    .replace('//[::]:', '//[::1]:')
}

/** The subject of a sample; null leaves a field out, for the daemon to fill in from what it knows. */
type SampleIds = Readonly<Record<'customerId' | 'productId' | 'paymentId' | 'subscriptionId', string | null>>

type IdOptions = Readonly<
  Partial<Record<'customer' | 'product' | 'payment' | 'subscription', string | undefined>>
>

const TEST_CUSTOMER = 'cus_test'
const TEST_PRODUCT = 'pro_test'

/**
 * Fills in omitted options. Payment and subscription follow from customer and product, so that a later
 * `payment.refunded` of the same two is about the same payment. A payment or subscription that is given brings its own
 * customer and product.
 */
export function chooseIds(type: string, options: IdOptions): SampleIds {
  const isKnown = options.payment !== undefined || options.subscription !== undefined
  const customer = options.customer ?? TEST_CUSTOMER
  const product = options.product ?? TEST_PRODUCT
  const subject = subjectOf(type)

  const ownSubscription = subject === 'subscription' ? `sub_${digest(customer, product)}` : null
  // For a given subscription, only a payment event needs a payment: a subscription event may have none.
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

/** In a series, each event is about a payment of its own. */
export function numbered(ids: SampleIds, index: number, count: number): SampleIds {
  if (ids.paymentId === null || count === 1) return ids
  return { ...ids, paymentId: `${ids.paymentId}_${index + 1}` }
}

/** Taken from the type's name in either generation. */
function subjectOf(type: string): 'payment' | 'subscription' | 'other' {
  if (/^subscription[._]/i.test(type)) return 'subscription'
  return /^(payment|partial|checkout)(\.|_(?!method))/i.test(type) ? 'payment' : 'other'
}

function digest(...parts: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 12)
}

/**
 * Delivers a body as the provider does.
 * @param sentAt epoch milliseconds, for the signature
 */
export async function sendDelivery(
  url: string,
  endpoint: string,
  secret: string,
  sentAt: number,
  { event, body }: { readonly event: string | null; readonly body: string | Buffer },
): Promise<Receipt> {
  const { keylessApi } = await import('./api.js')
  const timestamp = String(Math.floor(sentAt / 1000))
  const receipt = await keylessApi(url).send<Partial<Receipt>>('POST', pathOf('webhooks', endpoint), {
    content: { type: 'application/json', text: body },
    headers: {
      ...(event !== null && { 'x-webhook-event': event }),
      'x-webhook-timestamp': timestamp,
      'x-webhook-signature': signBody(secret, timestamp, Buffer.from(body)),
    },
  })
  if (receipt.disposition !== undefined) return receipt as Receipt
  throw new LatchkeyError('daemon_unreachable', `${url} is not a Latchkey daemon: check the address`)
}
