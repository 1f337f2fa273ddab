import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished } from 'vitest'
import { verifySignature } from '../../src/provider/signature.js'
import { type Sandbox, type SandboxOptions, startSandbox } from '../../src/sandbox/sandbox.js'

export const START = '2026-01-01T00:00:00.000Z'
export const KEY = 'sk_sandbox_test'
export const DAY_MS = 24 * 60 * 60 * 1000

/** The instant so many days after the start. */
export const day = (days: number): string => new Date(Date.parse(START) + days * DAY_MS).toISOString()

// biome-ignore lint/suspicious/noExplicitAny: answers are looked at by what each test expects of them.
export type Json = any

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly body: Json
}

export interface Service extends Sandbox {
  /** Any request, with the key unless the headers say otherwise. */
  call(words: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<Answer>
  /** The same, of which the `data` is asked for: anything but a success fails the test. */
  data(words: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<Json>
  /** The code with which a request is refused. */
  refusal(words: string, body?: unknown): Promise<string>
}

/** A sandbox on a free port, which ends with the test. Bugs that it reports fail the test. */
export async function startService(options: SandboxOptions = {}): Promise<Service> {
  const bugs: unknown[] = []
  const sandbox = await startSandbox({
    ...{ from: START, key: KEY, seed: 7, retryDelaysMs: [], report: (error) => bugs.push(error) },
    ...options,
  })
  onTestFinished(async () => {
    await sandbox.stop()
    expect(bugs).toEqual([])
  })
  return { ...sandbox, ...client(sandbox.url, sandbox.key) }
}

export function client(url: string, key: string): Pick<Service, 'call' | 'data' | 'refusal'> {
  async function call(words: string, body?: unknown, headers: Readonly<Record<string, string>> = {}) {
    const [method = '', path = ''] = words.split(' ')
    const answer = await fetch(`${url}${path}`, {
      method,
      headers: { 'X-Service-Api-Key': key, 'Content-Type': 'application/json', ...headers },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await answer.text()
    const isJson = answer.headers.get('content-type')?.includes('json') ?? false
    return { status: answer.status, headers: answer.headers, body: isJson ? JSON.parse(text) : text }
  }
  return {
    call,
    async data(words, body, headers) {
      const answer = await call(words, body, headers)
      expect(answer.body, words).toMatchObject({ success: true })
      return answer.body.data
    },
    async refusal(words, body) {
      const answer = await call(words, body)
      expect(answer.body, words).toMatchObject({ success: false })
      return `${answer.status} ${answer.body.error}`
    },
  }
}

export interface Received {
  readonly type: string
  readonly path: string
  /** Whether the receiver's secret signed it, near its own time. */
  readonly isSigned: boolean
  readonly event: Json
}

export interface Receiver {
  readonly url: string
  readonly received: Received[]
  /** The types that came, in order. */
  readonly types: () => readonly string[]
  /** Forgets what came, and answers with it. */
  readonly take: () => readonly Received[]
  /** The statuses that the next deliveries get; 200 once they are used up, and no answer for a negative one. */
  readonly answers: number[]
}

export const SECRET = 'whsec_of_the_receiver'

/** A server that webhooks are delivered to. */
export async function startReceiver(): Promise<Receiver> {
  const received: Received[] = []
  const answers: number[] = []
  const server = createServer(async (req, res) => {
    const parts: Buffer[] = []
    for await (const part of req) parts.push(part as Buffer)
    const body = Buffer.concat(parts)
    const check = verifySignature({
      body,
      headers: req.headersDistinct,
      endpoint: { secrets: [{ secret: SECRET, notAfter: null }], toleranceSeconds: 300 },
      now: Date.now(),
    })
    const type = req.headers['x-webhook-event']
    received.push({
      type: String(type),
      path: req.url ?? '',
      isSigned: check.ok,
      event: JSON.parse(body.toString()),
    })
    const status = check.ok ? (answers.shift() ?? 200) : 401
    if (status < 0) return
    res.statusCode = status
    res.end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`
  return {
    url,
    received,
    answers,
    types: () => received.map(({ type }) => type),
    take: () => received.splice(0),
  }
}

/** A sandbox that delivers to a receiver, in one generation or both. */
export async function startHeard(
  generations: readonly ('v3' | 'v2')[] = ['v3'],
  options: SandboxOptions = {},
): Promise<Service & { readonly receiver: Receiver }> {
  const receiver = await startReceiver()
  const endpoints = generations.map((generation) => ({ url: receiver.url, secret: SECRET, generation }))
  return { ...(await startService({ endpoints, ...options })), receiver }
}

// What most stories begin with

export const ONE_TIME = {
  name: 'Gold',
  priceCents: '1900',
  currency: 'EUR',
  paymentMethods: ['CARD', 'CRYPTO'],
}
export const MONTHLY = { ...ONE_TIME, name: 'Monthly', frequencyInDays: 30 }

export async function createProduct(service: Service, more: object = {}): Promise<string> {
  return (await service.data('POST /v3/products', { ...ONE_TIME, ...more })).id
}

export async function createPayment(
  service: Service,
  more: object = {},
  product: object = {},
): Promise<Json> {
  const productId = await createProduct(service, product)
  return service.data('POST /v3/payments', { productId, customerEmail: 'ada@example.com', ...more })
}

/** A running subscription, paid by a card that is saved. */
export async function subscribe(
  service: Service,
  { product = {}, ...more }: Json = {},
): Promise<{
  readonly id: string
  readonly customerId: string
  readonly productId: string
  readonly payment: Json
}> {
  const productId = await createProduct(service, { ...MONTHLY, ...product })
  const { id, customerId, payment } = await service.data('POST /v3/subscriptions', {
    productId,
    customerEmail: 'ada@example.com',
    card: { tokenizedInstrument: 'tok_good' },
    ...more,
  })
  await delivered(service)
  return { id, customerId, productId, payment }
}

/** Waits for what the service tells after its answer. */
export async function delivered(service: Service): Promise<void> {
  await service.advance('0s')
}

export const subscriptionOf = (service: Service, id: string): Promise<Json> =>
  service.data(`GET /v3/subscriptions/${id}`)

/** Of a subscription, the newest first. */
export async function paymentsOf(service: Service, subscriptionId: string): Promise<readonly Json[]> {
  const { items } = await service.data('GET /v3/payments?limit=100')
  return items.filter((payment: Json) => payment.subscriptionId === subscriptionId)
}
