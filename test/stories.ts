import { Agent, request } from 'node:http'
import { signBody } from '../src/provider/signature.js'
import { SECRET, type SeenEntitlement } from './world.js'

/** An event as the provider words it. */
export interface SentEvent {
  readonly id: string
  readonly body: string
}

export function sentEvent(id: string, type: string, at: number, data: object, livemode = true): SentEvent {
  const createdAt = new Date(at).toISOString()
  return { id, body: JSON.stringify({ id, type, createdAt, livemode, data }) }
}

/** One customer, what happened, and what follows once all of it has arrived, in whatever order. */
export interface CustomerStory {
  readonly customerId: string
  readonly events: readonly SentEvent[]
  readonly outcome: SeenEntitlement
}

const MINUTE_MS = 60_000
const BEGUN_AT = Date.UTC(2025, 0, 31, 12)

/**
 * A subscription paid by a payment that only the subscription's own event links to it; every other story's
 * payment is refunded.
 */
export function customerStory(n: number): CustomerStory {
  const facts = {
    customer: { object: 'customer', id: `cus_${n}` },
    product: { object: 'product', id: 'pro_1' },
  }
  const payment = { object: 'payment', id: `pay_${n}`, method: 'CARD', ...facts }
  const subscription = { object: 'subscription', id: `sub_${n}`, payment_id: `pay_${n}`, ...facts }
  const isRefunded = n % 2 === 1
  const refund = sentEvent(`evt_${n}_refunded`, 'payment.refunded', BEGUN_AT + 2 * MINUTE_MS, payment)
  return {
    customerId: `cus_${n}`,
    events: [
      sentEvent(`evt_${n}_paid`, 'payment.authorized', BEGUN_AT, payment),
      sentEvent(`evt_${n}_created`, 'subscription.created', BEGUN_AT + MINUTE_MS, subscription),
      ...(isRefunded ? [refund] : []),
    ],
    outcome: { productId: 'pro_1', active: !isRefunded, status: isRefunded ? 'refunded' : 'active' },
  }
}

export const storiesOf = (first: number, count: number): readonly CustomerStory[] =>
  Array.from({ length: count }, (_, n) => customerStory(first + n))

export const eventsOf = (stories: readonly CustomerStory[]): readonly SentEvent[] =>
  stories.flatMap(({ events }) => events)

export const idsOf = (events: readonly SentEvent[]): readonly string[] => events.map(({ id }) => id)

/** Somebody who is to be erased: nothing of the words may be left then. */
export interface Person {
  readonly customerId: string
  readonly words: readonly string[]
  readonly events: readonly SentEvent[]
}

/** Somebody with a subscription that was paid three times, of whom each event says everything. */
export function person(n: number): Person {
  const customerId = `cus_person_${n}`
  const email = `person-${n}@private.example`
  const name = `Nobody Elses Name ${n}.`
  const communityId = `8035111022467${n + 1_000}`
  const reference = `crm-of-person-${n}.`
  const facts = {
    customer: { object: 'customer', id: customerId, email, name, communityId },
    product: { object: 'product', id: 'pro_1' },
    external_ref: reference,
    metadata: { seat: `${reference}seat` },
  }
  const subscription = `sub_person_${n}`
  const events = [0, 1, 2].flatMap((month) => {
    const payment = `pay_person_${n}_${month}`
    const at = BEGUN_AT + month * MINUTE_MS
    const type = month === 0 ? 'subscription.created' : 'subscription.renewed'
    const paid = { object: 'payment', id: payment, subscription_id: subscription, method: 'CARD', ...facts }
    const cycle = { object: 'subscription', id: subscription, payment_id: payment, ...facts }
    return [
      sentEvent(`evt_${payment}`, 'payment.authorized', at, paid),
      sentEvent(`evt_${payment}_cycle`, type, at + 1, cycle),
    ]
  })
  return { customerId, words: [email, name, communityId, reference], events }
}

export interface Answer {
  readonly status: number
  /** What a problem is called; undefined where it went well. */
  readonly code?: string
  readonly disposition?: string
}

export const NOT_STORED = { status: 503, code: 'not_stored' }

export interface SendOptions {
  readonly endpoint?: string
  readonly secret?: string
  readonly agent?: Agent
  /** When it was signed. */
  readonly at?: number
  /** As long as the provider waits for an answer, by default. */
  readonly patienceMs?: number | null
  /** Beside those of every delivery. */
  readonly headers?: Readonly<Record<string, string>>
}

/** Null where the connection broke, or no answer came in time. */
export function send(
  url: string,
  { body }: SentEvent,
  {
    endpoint = 'live',
    secret = SECRET,
    agent,
    at = Date.now(),
    patienceMs = 5_000,
    ...others
  }: SendOptions = {},
): Promise<Answer | null> {
  const timestamp = String(Math.floor(at / 1000))
  const headers = {
    ...others.headers,
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(body),
    'X-Webhook-Timestamp': timestamp,
    'X-Webhook-Signature': signBody(secret, timestamp, Buffer.from(body)),
  }
  const options = {
    method: 'POST',
    headers,
    ...(agent && { agent }),
    ...(patienceMs !== null && { signal: AbortSignal.timeout(patienceMs) }),
  }
  return new Promise((resolve) => {
    const req = request(`${url}/webhooks/${endpoint}`, options, (res) => {
      let text = ''
      res.setEncoding('utf8').on('data', (part: string) => {
        text += part
      })
      res.on('end', () => resolve({ ...JSON.parse(text), status: res.statusCode ?? 0 }))
      res.on('error', () => resolve(null))
    })
    req.on('error', () => resolve(null)).end(body)
  })
}

export interface DeliveredLoad {
  /** The ids that were answered 200, in the order of the answers. */
  readonly acknowledged: readonly string[]
  readonly dispositions: readonly string[]
  /** Any other answers, by status. Where the connection broke there was none. */
  readonly refused: readonly number[]
}

export interface LoadOptions extends Pick<SendOptions, 'endpoint' | 'secret'> {
  /** Told after each 200 how many there were. */
  readonly onAcknowledged?: (count: number) => void
}

const CONNECTIONS = 24

/** Delivers each event once, over a few connections that are kept, each with one delivery under way. */
export async function deliver(
  url: string,
  events: readonly SentEvent[],
  { onAcknowledged = () => {}, ...options }: LoadOptions = {},
): Promise<DeliveredLoad> {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS })
  const acknowledged: string[] = []
  const dispositions: string[] = []
  const refused: number[] = []
  const waiting = events.values()

  async function deliverNext(): Promise<void> {
    for (const event of waiting) {
      const answer = await send(url, event, { ...options, agent, patienceMs: null })
      if (answer === null) continue
      if (answer.status !== 200) {
        refused.push(answer.status)
        continue
      }
      acknowledged.push(event.id)
      dispositions.push(answer.disposition ?? '')
      onAcknowledged(acknowledged.length)
    }
  }

  await Promise.all(Array.from({ length: CONNECTIONS }, deliverNext))
  agent.destroy()
  return { acknowledged, dispositions, refused }
}
