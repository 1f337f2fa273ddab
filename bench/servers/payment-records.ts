import { serveAndAnnounce } from './announce.js'

/*
 * The payments service's lists and nothing else: so many subscriptions by card, each with as many payments as make up
 * the rest. Every record follows from its number, so that none is kept.
 */

const [, , subscriptions = 0, payments = 0] = process.argv.map(Number)
const CYCLE_MS = 30 * 24 * 60 * 60 * 1000
const now = Date.now()
const cycles = payments / subscriptions

const iso = (at: number): string => new Date(at).toISOString()

/** When a cycle of a subscription was paid, from 0. */
const paidAt = (subscription: number, cycle: number): number =>
  now - CYCLE_MS * (cycles - cycle - 1) - CYCLE_MS / 2 + subscription

function subscription(index: number): object {
  const createdAt = iso(paidAt(index, 0))
  return {
    ...{ id: `sub_${index}`, organizationId: 'org_1', customerId: `cus_${index}`, productId: 'pro_1' },
    ...{
      status: 'ACTIVE',
      currentCycle: cycles,
      totalCycles: null,
      trialEndAt: null,
      cancelAtPeriodEnd: false,
    },
    currentCycleDueAt: iso(paidAt(index, cycles)),
    ...{ externalRef: `user_${index}`, metadata: null, scheduledChange: null },
    ...{ createdAt, updatedAt: iso(paidAt(index, cycles - 1)) },
  }
}

function payment(index: number): object {
  const [owner, cycle] = [index % subscriptions, Math.floor(index / subscriptions)]
  const at = iso(paidAt(owner, cycle))
  return {
    ...{ id: `pay_${index}`, organizationId: 'org_1', customerId: `cus_${owner}`, productId: 'pro_1' },
    ...{ subscriptionId: `sub_${owner}`, status: 'COMPLETED', priceCents: '1900', currency: 'EUR' },
    ...{
      asset: null,
      declineCode: null,
      declineCategory: null,
      refundedAt: null,
      externalRef: `user_${owner}`,
    },
    statusTimeline: ['PENDING', 'AUTHORIZED', 'COMPLETED'].map((status) => ({ status, at })),
    ...{ paymentReceivedAt: at, paymentSettledAt: at, createdAt: at, updatedAt: at },
  }
}

function page(recordOf: (index: number) => object, count: number, query: URLSearchParams): object {
  const from = Number(query.get('cursor') ?? 0)
  const end = Math.min(count, from + Number(query.get('limit') ?? 20))
  const items = Array.from({ length: end - from }, (_, i) => recordOf(from + i))
  return { items, pagination: { nextCursor: end < count ? String(end) : null, hasMore: end < count } }
}

serveAndAnnounce((req, res) => {
  const { pathname, searchParams } = new URL(req.url ?? '', 'http://127.0.0.1')
  const data =
    pathname === '/v3/subscriptions'
      ? page(subscription, subscriptions, searchParams)
      : page(payment, payments, searchParams)
  const body = JSON.stringify({ success: true, data })
  res
    .writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) })
    .end(body)
})
