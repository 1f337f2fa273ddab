import {
  anyStoredCustomer,
  anyStoredSubscriber,
  newCustomer,
  PRODUCT_OF,
  storedCustomer,
} from '../sample/customers.js'
import { cycleEvents, type DatedEvent, historyOf, MONTH_MS } from '../sample/cycles.js'
import { deliveryOf, ENDPOINT } from '../sample/signing.js'
import { toldByStripe } from '../sample/stripe.js'

/** As which service events are sent; by default as the payments service. */
interface Sender {
  readonly sender?: 'stripe'
}

/** What to ask of a server. */
export type Workload =
  /** Distinct signed events. `returning`: half the customers renew, each one of so many in a generated store. */
  | ({ readonly kind: 'deliveries'; readonly returning: number | null } & Sender)
  /** The first event of each of so many subscriptions, then the second of each, and so on. */
  | ({ readonly kind: 'subscriptions'; readonly subscriptions: number } & Sender)
  /** Renewals, each of a random one of so many subscriptions. */
  | ({ readonly kind: 'renewals'; readonly subscriptions: number } & Sender)
  /** Who has access to what, asked about a random one of so many customers in a generated store. */
  | { readonly kind: 'questions'; readonly customers: number; readonly apiKey: string }
  /** The same, about so many random pairs of a customer and a product at once. */
  | { readonly kind: 'checks'; readonly pairs: number; readonly customers: number; readonly apiKey: string }

export type Deliveries = Extract<Workload, { kind: 'deliveries' | 'subscriptions' | 'renewals' }>

/** Buyers tell of two events and subscribers of two cycles: four events a customer. */
const EVENTS_OF_NEW_CUSTOMER = 6

/** So many customers take turns: what one customer's events touch is not all written in one batch. */
const CUSTOMERS_AT_ONCE = 252

const MINUTE_MS = 60_000

/** Whole HTTP requests, as bytes. */
export function buildRequests(workload: Workload, count: number, now: number): Buffer[] {
  switch (workload.kind) {
    case 'deliveries':
      return ofManyCustomers(workload.returning, count, now).map(sentBy(workload, now))
    case 'subscriptions':
      return Array.from({ length: count }, (_, i) => subscribed(i, workload.subscriptions, now)).map(
        sentBy(workload, now),
      )
    case 'renewals':
      return Array.from({ length: count }, (_, i) => renewed(i, workload.subscriptions, now)).map(
        sentBy(workload, now),
      )
    case 'questions':
      return Array.from({ length: count }, () => question(workload.customers, workload.apiKey))
    case 'checks':
      return Array.from({ length: count }, () => bulkCheck(workload))
    default:
      return workload satisfies never
  }
}

function ofManyCustomers(returning: number | null, count: number, now: number): DatedEvent[] {
  const events: DatedEvent[] = []
  for (let first = 0; events.length < count; first += CUSTOMERS_AT_ONCE) {
    const histories = Array.from({ length: CUSTOMERS_AT_ONCE }, (_, i) =>
      returning !== null && i % 4 >= 2 ? renewal(returning, first + i, now) : firstMonths(i, now),
    )
    events.push(...takeTurns(histories))
  }
  return events.slice(0, count)
}

function firstMonths(index: number, now: number): DatedEvent[] {
  return historyOf(newCustomer(index), now - MONTH_MS - MINUTE_MS, EVENTS_OF_NEW_CUSTOMER)
}

/** Named by instant and number, since the same subscriber may be drawn again, in this run or in a later one. */
function renewal(customers: number, number: number, now: number): DatedEvent[] {
  const name = `${now.toString(36)}-${number}`
  return cycleEvents(anyStoredSubscriber(customers), { name, isFirst: false, paidAt: now })
}

function subscribed(index: number, subscriptions: number, now: number): DatedEvent {
  const customer = storedCustomer(2 * (index % subscriptions) + 1, 2 * subscriptions)
  const paidAt = now - MONTH_MS + Math.floor(index / subscriptions) * MINUTE_MS
  const cycle = { name: `early-${index}`, isFirst: index < subscriptions, paidAt }
  return cycleEvents(customer, cycle).at(-1) as DatedEvent
}

function renewed(number: number, subscriptions: number, now: number): DatedEvent {
  return renewal(2 * subscriptions, number, now).at(-1) as DatedEvent
}

function* takeTurns(histories: readonly (readonly DatedEvent[])[]): Generator<DatedEvent> {
  const longest = Math.max(...histories.map(({ length }) => length))
  for (let turn = 0; turn < longest; turn += 1) {
    for (const history of histories) {
      const event = history[turn]
      if (event !== undefined) yield event
    }
  }
}

function sentBy({ sender }: Sender, now: number): (event: DatedEvent) => Buffer {
  return (event) => (sender === 'stripe' ? deliveryByStripe(event, now) : deliveryByProvider(event, now))
}

function deliveryByProvider(event: DatedEvent, now: number): Buffer {
  const { body, headers } = deliveryOf(event, now)
  return post(body, [
    `X-Webhook-Event: ${headers.event}`,
    `X-Webhook-Timestamp: ${headers.timestamp}`,
    `X-Webhook-Signature: ${headers.signature}`,
  ])
}

function deliveryByStripe(event: DatedEvent, now: number): Buffer {
  const { body, signature } = toldByStripe(event, now)
  return post(body, [`Stripe-Signature: ${signature}`])
}

function post(body: Buffer, signedHeaders: readonly string[]): Buffer {
  const head = [
    `POST /webhooks/${ENDPOINT} HTTP/1.1`,
    'Host: 127.0.0.1',
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
    ...signedHeaders,
  ]
  return Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), body])
}

function question(customers: number, apiKey: string): Buffer {
  const { key } = anyStoredCustomer(customers)
  const head = [
    `GET /entitlements/cus_${key} HTTP/1.1`,
    'Host: 127.0.0.1',
    'Accept: application/json',
    `Authorization: Bearer ${apiKey}`,
  ]
  return Buffer.from(`${head.join('\r\n')}\r\n\r\n`)
}

function bulkCheck({ pairs, customers, apiKey }: Workload & { readonly kind: 'checks' }): Buffer {
  const checks = Array.from({ length: pairs }, () => {
    const { key, kind } = anyStoredCustomer(customers)
    return { customerId: `cus_${key}`, productId: PRODUCT_OF[kind] }
  })
  const body = Buffer.from(JSON.stringify({ checks }))
  const head = [
    'POST /entitlements/check HTTP/1.1',
    'Host: 127.0.0.1',
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
    `Authorization: Bearer ${apiKey}`,
  ]
  return Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), body])
}
