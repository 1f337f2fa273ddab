/* What `latchkey sandbox …` asks of a running sandbox: one row for each act, for the command line and for stories. */

import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { locateConfig } from '../../config/locate.js'
import { LatchkeyError } from '../../errors.js'
import { instantIn } from '../command.js'
import type { CliContext, SharedOptions } from '../context.js'

export const SANDBOX_PORT = 4690

export interface SandboxRequest {
  readonly method: string
  readonly path: string
  readonly body?: object
}

type Given = Readonly<Record<string, string | undefined>>

export interface Act {
  readonly about: string
  /** The name of its argument; null: it has none. */
  readonly argument: string | null
  readonly examples: readonly string[]
  /** What each option is about, by its name as it is typed. */
  readonly options: Readonly<Record<string, string>>
  readonly request: (argument: string, given: Given) => SandboxRequest
}

const post = (path: string, body: object = {}): SandboxRequest => ({ method: 'POST', path, body })
const id = encodeURIComponent

/** @throws {LatchkeyError} `usage` */
function number(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text)
  throw new LatchkeyError('usage', `--${name} ${text}: expected a number`)
}

/** @throws {LatchkeyError} `usage`: `what`, and the form of a time */
function instantText(text: string, what: string): string {
  const instant = instantIn(text)
  if (instant !== null) return new Date(instant).toISOString()
  throw new LatchkeyError('usage', `${what} a time such as 2026-03-01T00:00:00Z`)
}

const SHOWN: readonly string[] = ['clock', 'truth', 'deliveries', 'faults']

/** @throws {LatchkeyError} `usage` */
function yesOrNo(name: string, text: string | undefined): boolean | undefined {
  if (text === undefined) return undefined
  if (text === 'yes' || text === 'no') return text === 'yes'
  throw new LatchkeyError('usage', `--${name} ${text}: expected yes or no`)
}

const CREATABLE: Readonly<Record<string, (given: Given) => SandboxRequest>> = {
  product: ({ name = 'Product', price = '1900', currency = 'EUR', every }) =>
    post('/v3/products', {
      ...{ name, priceCents: price, currency, paymentMethods: ['CARD', 'CRYPTO'] },
      frequencyInDays: number('every', every),
    }),
  customer: ({ email = 'customer@example.com', name }) => post('/sandbox/customers', { email, name }),
  payment: (given) => post('/v3/payments', checkoutOf(given)),
  subscription: (given) => post('/v3/subscriptions', checkoutOf(given)),
  endpoint({ url, generation }) {
    if (url === undefined) throw new LatchkeyError('usage', 'name the address of your app with --url')
    return post('/v3/webhook-endpoints', { url, generation })
  },
}

function checkoutOf({ product, customer, email = 'customer@example.com', ref, card }: Given): object {
  if (product === undefined) throw new LatchkeyError('usage', 'name the product with --product')
  const buyer = customer === undefined ? { customerEmail: email } : { customerId: customer }
  return { productId: product, ...buyer, externalRef: ref, card: card && { tokenizedInstrument: card } }
}

export const SANDBOX_ACTS: Readonly<Record<string, Act>> = {
  create: {
    about: 'create a product, a customer, a payment, a subscription or a webhook endpoint',
    argument: 'kind',
    examples: [
      'sandbox create product --name Gold --every 30',
      'sandbox create subscription --product Gold --email ann@example.com --card tok_good',
      'sandbox create endpoint --url http://127.0.0.1:3000/webhooks',
    ],
    options: {
      name: 'the name of the product or the customer',
      price: 'the price of the product, in cents (default: 1900)',
      currency: 'EUR or USD (default: EUR)',
      every: 'days per billing cycle of a product (default: it is bought once)',
      product: 'the product to buy, by id or name',
      customer: 'the customer who buys',
      email: "the buyer's email (default: customer@example.com)",
      ref: "the merchant's own reference",
      card: 'a test card to charge at once: tok_good, tok_soft_decline, tok_hard_decline, tok_3ds',
      url: 'where your app takes webhooks; the answer has the secret that signs them',
      generation: 'the events that it gets: v3 or v2 (default: v3)',
    },
    request(kind, given) {
      const request = CREATABLE[kind]?.(given)
      if (request !== undefined) return request
      throw new LatchkeyError('usage', `can't create ${kind}: expected ${Object.keys(CREATABLE).join(', ')}`)
    },
  },
  pay: {
    about: 'pay a payment, as its buyer would',
    argument: 'payment',
    examples: ['sandbox pay pay_1', 'sandbox pay pay_1 --method CRYPTO --share 0.5'],
    options: {
      method: 'CARD, WALLET_A, WALLET_B or CRYPTO',
      share: 'how much of a deposit comes, such as 0.5',
      confirmations: 'how many confirmations a deposit has',
      email: 'the email of a new buyer',
    },
    request: (payment, { method, share, confirmations, email }) =>
      post(`/sandbox/payments/${id(payment)}/pay`, {
        ...{
          method,
          email,
          share: number('share', share),
          confirmations: number('confirmations', confirmations),
        },
      }),
  },
  decline: {
    about: 'have a payment declined, or every charge of a customer’s saved card from now on',
    argument: 'charged',
    examples: ['sandbox decline pay_1', 'sandbox decline ann@example.com --outcome hard_decline'],
    options: { outcome: 'soft_decline, hard_decline, 3ds_failed, technical_failure (default: soft_decline)' },
    request: (named, { outcome = 'soft_decline' }) =>
      named.startsWith('cus_')
        ? post(`/sandbox/customers/${id(named)}/card`, { outcome })
        : post(`/sandbox/payments/${id(named)}/pay`, { outcome }),
  },
  refund: {
    about: 'refund a payment, in full or in part',
    argument: 'payment',
    examples: ['sandbox refund pay_1 --amount 500', 'sandbox refund ann@example.com'],
    options: { amount: 'in cents (default: all that is left)' },
    request: (payment, { amount }) =>
      post(`/sandbox/payments/${id(payment)}/refund`, { amountInCents: number('amount', amount) }),
  },
  chargeback: {
    about: 'have the bank charge a payment back',
    argument: 'payment',
    examples: ['sandbox chargeback pay_1'],
    options: {},
    request: (payment) => post(`/sandbox/payments/${id(payment)}/chargeback`),
  },
  cancel: {
    about: 'cancel a subscription',
    argument: 'subscription',
    examples: ['sandbox cancel sub_1 --when period-end'],
    options: { when: 'now or period-end (default: now)' },
    request(subscription, { when = 'now' }) {
      if (when !== 'now' && when !== 'period-end')
        throw new LatchkeyError('usage', `--when ${when}: expected now or period-end`)
      return post(`/v3/subscriptions/${id(subscription)}/cancel`, { atPeriodEnd: when === 'period-end' })
    },
  },
  'change-plan': {
    about: 'move a subscription to another product',
    argument: 'subscription',
    examples: ['sandbox change-plan ann@example.com --product Gold'],
    options: {
      product: 'the product to move to, by id or name',
      effective: 'auto, now or period_end',
      proration: 'delta or none',
      card: 'a new test card',
    },
    request: (subscription, { product, effective, proration, card }) =>
      post(`/v3/subscriptions/${id(subscription)}/change-plan`, {
        ...{ productId: product, effective, proration, card: card && { tokenizedInstrument: card } },
      }),
  },
  advance: {
    about: 'move the clock forward, and run everything that falls due',
    argument: 'time',
    examples: ['sandbox advance 30d', 'sandbox advance 2026-03-01T00:00:00Z'],
    options: {},
    request(time) {
      if (/^\d+[smhd]$/.test(time)) return post('/sandbox/clock/advance', { by: time })
      return post('/sandbox/clock/advance', {
        to: instantText(time, `can't advance ${time}: expected a duration such as 30d, or`),
      })
    },
  },
  faults: {
    about: 'make deliveries fail; without options, stop doing so',
    argument: null,
    examples: ['sandbox faults --drop 0.05 --duplicate 0.1', 'sandbox faults'],
    options: {
      drop: 'the share that is never sent, such as 0.05; nothing sends it later',
      duplicate: 'the share that is sent twice',
      damage: 'the share whose first signature is wrong',
      delay: 'how late they come, such as 2h',
      reorder: 'yes: shuffle the deliveries',
      endpoint: 'only for this endpoint',
    },
    request: (_none, { drop, duplicate, damage, delay, reorder, endpoint }) =>
      [drop, duplicate, damage, delay, reorder].every((value) => value === undefined)
        ? { method: 'DELETE', path: '/sandbox/faults' }
        : post('/sandbox/faults', {
            ...{ drop: number('drop', drop), duplicate: number('duplicate', duplicate) },
            ...{ damage: number('damage', damage), delay, endpoint, reorder: yesOrNo('reorder', reorder) },
          }),
  },
  show: {
    about: 'show a record by its id, or clock, truth, deliveries or faults',
    argument: 'what',
    examples: ['sandbox show sub_1', 'sandbox show truth --at 2026-03-01'],
    options: { at: 'who had access at this time, with truth (default: now)' },
    request(what, { at }) {
      const kinds: Readonly<Record<string, string>> = {
        ...{ pro: '/v3/products', cus: '/v3/customers', pay: '/v3/payments', sub: '/v3/subscriptions' },
      }
      const known = kinds[what.split('_')[0] ?? '']
      if (known !== undefined) return { method: 'GET', path: `${known}/${id(what)}` }
      if (!SHOWN.includes(what)) {
        const message = `can't show ${what}: expected an id that begins with pro_, cus_, pay_ or sub_, or ${SHOWN.join(', ')}`
        throw new LatchkeyError('usage', message)
      }
      const query = at === undefined ? '' : `?at=${id(instantText(at, `--at ${at}: expected`))}`
      return { method: 'GET', path: `/sandbox/${what}${query}` }
    },
  },
}

/** Where a sandbox keeps its key, so that commands in the same folder find it. */
export function sandboxKeyFile({ config: option }: SharedOptions, { env, folder }: CliContext): string {
  return join(dirname(locateConfig({ option, env, folder }).path), 'data', 'sandbox-key.txt')
}

/** The key that a sandbox of this folder has, or had; null: none was written. */
export function readSandboxKey(file: string): string | null {
  try {
    const key = readFileSync(file, 'utf8').trim()
    return key.startsWith('sk_sandbox_') ? key : null
  } catch {
    return null
  }
}

/** Asks a running sandbox. @throws {LatchkeyError} `daemon_unreachable`, `daemon_failed` with the sandbox's own words */
export async function askSandbox(
  port: number,
  key: string,
  { method, path, body }: SandboxRequest,
): Promise<unknown> {
  const url = `http://127.0.0.1:${port}`
  const answer = await fetch(`${url}${path}`, {
    method,
    headers: { 'X-Service-Api-Key': key, 'Content-Type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  }).catch((cause: unknown) => {
    const todo = 'start it with `latchkey sandbox`, or name its port with --port'
    throw new LatchkeyError('daemon_unreachable', `no sandbox answers at ${url}: ${todo}`, { cause })
  })
  const { data, error, message } = (await answer.json()) as {
    readonly data?: { readonly fieldErrors?: readonly { readonly field: string; readonly message: string }[] }
    readonly error?: string
    readonly message?: string
  }
  if (answer.ok) return data
  if (error === undefined)
    throw new LatchkeyError('usage', `${url} is not a sandbox: name its port with --port`)
  if (error === 'UNAUTHORIZED') {
    const todo = 'run the command in the folder where the sandbox was started, or pass its key with --key'
    throw new LatchkeyError('usage', `the sandbox at ${url} has another key: ${todo}`)
  }
  const fields = data?.fieldErrors?.map((one) => ` ${one.field}: ${one.message}.`).join('') ?? ''
  throw new LatchkeyError('daemon_failed', `the sandbox refused it (${error}): ${message}${fields}`)
}
