import { Agent, request } from 'node:http'
import { signBody } from '../../src/provider/signature.js'
import { SECRET, type SeenEntitlement } from './served.js'

/** An event as the provider words it. */
export interface SentEvent {
  readonly id: string
  readonly body: string
}

/** One customer, what happened, and what follows once all of it has arrived, in whatever order. */
export interface CustomerStory {
  readonly customerId: string
  readonly events: readonly SentEvent[]
  readonly outcome: SeenEntitlement
}

const PRODUCT = 'pro_1'
const MINUTE_MS = 60_000
const AUTHORIZED_AT = Date.UTC(2025, 0, 31, 12)

/**
 * A subscription paid by a payment that only the subscription's own event links to it; every other story's
 * payment is refunded.
 */
export function customerStory(n: number): CustomerStory {
  const facts = {
    customer: { object: 'customer', id: `cus_${n}` },
    product: { object: 'product', id: PRODUCT },
  }
  const payment = { object: 'payment', id: `pay_${n}`, method: 'CARD', ...facts }
  const subscription = { object: 'subscription', id: `sub_${n}`, payment_id: `pay_${n}`, ...facts }
  const isRefunded = n % 2 === 1
  return {
    customerId: `cus_${n}`,
    events: [
      sentEvent(`evt_${n}_paid`, 'payment.authorized', AUTHORIZED_AT, payment),
      sentEvent(`evt_${n}_created`, 'subscription.created', AUTHORIZED_AT + MINUTE_MS, subscription),
      ...(isRefunded
        ? [sentEvent(`evt_${n}_refunded`, 'payment.refunded', AUTHORIZED_AT + 2 * MINUTE_MS, payment)]
        : []),
    ],
    outcome: { productId: PRODUCT, active: !isRefunded, status: isRefunded ? 'refunded' : 'active' },
  }
}

function sentEvent(id: string, type: string, createdAt: number, data: object): SentEvent {
  return {
    id,
    body: JSON.stringify({ id, type, createdAt: new Date(createdAt).toISOString(), livemode: true, data }),
  }
}

export interface DeliveredLoad {
  /** The ids that were answered 200, in the order of the answers. */
  readonly acknowledged: readonly string[]
  readonly dispositions: readonly string[]
  /** Any other answers, by status. Where the connection broke there was none. */
  readonly refused: readonly number[]
}

export interface LoadOptions {
  /** Told after each 200 how many there were. */
  readonly onAcknowledged?: (count: number) => void
  readonly endpoint?: string
  readonly secret?: string
}

const CONNECTIONS = 24

/** Delivers each event once, over a few connections that are kept, each with one delivery under way. */
export async function deliver(
  url: string,
  events: readonly SentEvent[],
  { onAcknowledged = () => {}, endpoint = 'live', secret = SECRET }: LoadOptions = {},
): Promise<DeliveredLoad> {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS })
  const acknowledged: string[] = []
  const dispositions: string[] = []
  const refused: number[] = []
  const waiting = events.values()

  async function send(): Promise<void> {
    for (const event of waiting) {
      const answer = await post(agent, `${url}/webhooks/${endpoint}`, event.body, secret)
      if (answer === null) continue
      if (answer.status !== 200) {
        refused.push(answer.status)
        continue
      }
      acknowledged.push(event.id)
      dispositions.push((JSON.parse(answer.text) as { disposition: string }).disposition)
      onAcknowledged(acknowledged.length)
    }
  }

  await Promise.all(Array.from({ length: CONNECTIONS }, send))
  agent.destroy()
  return { acknowledged, dispositions, refused }
}

/** Null where the connection broke before a whole answer: nothing was acknowledged. */
function post(
  agent: Agent,
  url: string,
  body: string,
  secret: string,
): Promise<{ readonly status: number; readonly text: string } | null> {
  const timestamp = String(Math.floor(Date.now() / 1000))
  const headers = {
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(body),
    'X-Webhook-Timestamp': timestamp,
    'X-Webhook-Signature': signBody(secret, timestamp, Buffer.from(body)),
  }
  return new Promise((resolve) => {
    const req = request(url, { method: 'POST', agent, headers }, (res) => {
      let text = ''
      res.setEncoding('utf8').on('data', (part: string) => {
        text += part
      })
      res.on('end', () => resolve({ status: res.statusCode ?? 0, text }))
      res.on('error', () => resolve(null))
    })
    req.on('error', () => resolve(null)).end(body)
  })
}
