import { describe, expect, it } from 'vitest'
import type { BackfillJson, BackfillSummaryJson } from '../../src/handlers/backfills.js'
import {
  ask,
  call,
  type DaemonOptions,
  type RunningDaemon,
  runDaemon,
  SANDBOX_SECRET,
  send,
} from '../daemon/running-daemon.js'
import { EXAMPLE_POLICY } from '../entitlements/policies.js'
import { createPayment, createProduct, type Json, KEY, MONTHLY, startHeard } from '../sandbox/service.js'
import { eventually } from '../setup/eventually.js'
import { type Proxy, startProxy } from './proxy.js'

type Service = Awaited<ReturnType<typeof startHeard>>

const PAGE_SIZE = 2

const { lapseAfter: _, ...POLICY } = EXAMPLE_POLICY

const ENDPOINTS = {
  policy: POLICY,
  endpoints: { sandbox: { environment: 'sandbox', secrets: [SANDBOX_SECRET], aheadAtMost: '10y' } },
}

/** A service with some customers; `lost`: what no webhook told. */
interface Market {
  readonly service: Service
  readonly proxy: Proxy
  readonly ids: Readonly<Record<string, { readonly customerId: string; readonly id: string }>>
  readonly told: readonly Json[]
  readonly lost: readonly Json[]
  readonly now: number
}

async function subscriber(service: Service, productId: string, name: string) {
  const { id, customerId } = await service.data('POST /v3/subscriptions', {
    productId,
    customerEmail: `${name}@example.com`,
    card: { tokenizedInstrument: 'tok_good' },
  })
  await service.advance('0s')
  return { id, customerId }
}

/** Subscribers and one-time buyers, whose newest news did not come. */
async function openMarket(): Promise<Market> {
  const service = await startHeard(['v3'])
  const productId = await createProduct(service, MONTHLY)
  const ids: Record<string, { id: string; customerId: string }> = {}
  for (const name of ['renewed', 'canceled', 'failing', 'quiet'])
    ids[name] = await subscriber(service, productId, name)
  for (const name of ['refunded', 'charged', 'settled']) {
    const { id, customerId } = await createPayment(service, { customerEmail: `${name}@example.com` })
    ids[name] = { id, customerId }
    await service.pay(id)
  }
  await service.advance('20d')
  const told = service.receiver.take().map(({ event }) => event)
  await service.data(`POST /v3/subscriptions/${ids.canceled?.id}/cancel`)
  await service.data(`POST /sandbox/customers/${ids.failing?.customerId}/card`, { outcome: 'hard_decline' })
  await service.data(`POST /sandbox/payments/${ids.refunded?.id}/refund`)
  await service.data(`POST /sandbox/payments/${ids.charged?.id}/chargeback`)
  await service.advance('20d')
  const { id, customerId } = await createPayment(service, { customerEmail: 'unheard@example.com' })
  ids.unheard = { id, customerId }
  await service.pay(id)
  await service.advance('1h')
  const news = service.receiver.take().map(({ event }) => event)
  const isQuiet = (event: Json) => JSON.stringify(event).includes(ids.quiet?.customerId ?? '')
  const proxy = await startProxy(service, PAGE_SIZE)
  return {
    ...{ service, proxy, ids, told: [...told, ...news.filter(isQuiet)] },
    lost: news.filter((event) => !isQuiet(event)),
    now: Date.parse((await service.data('GET /sandbox/clock')).now) + 60_000,
  }
}

const instantly: DaemonOptions['sleep'] = async (_, signal) => signal.throwIfAborted()

const configOf = ({ proxy }: Market, more: Record<string, unknown> = {}, provider: object = {}) => ({
  ...ENDPOINTS,
  provider: { sandbox: { baseUrl: proxy.url, apiKey: KEY, legacy: true, ...provider } },
  ...more,
})

/** A daemon that heard what was told. */
async function listener(
  market: Market,
  { config = configOf(market), ...options }: DaemonOptions = {},
): Promise<RunningDaemon> {
  const daemon = await runDaemon({ config, now: market.now, sleep: instantly, ...options })
  if (options.folder === undefined) await tell(daemon, market.told, market.now)
  return daemon
}

async function tell(daemon: RunningDaemon, events: readonly Json[], now: number): Promise<void> {
  for (const event of events) {
    const timestamp = String(Math.floor(now / 1000))
    const { status } = await send(daemon, JSON.stringify(event), { endpoint: 'sandbox', timestamp })
    expect(status).toBe(200)
  }
}

async function start(daemon: RunningDaemon, body: object = {}): Promise<BackfillJson> {
  const { status, json } = await call(daemon, 'POST', '/backfills?environment=sandbox', body)
  expect({ status, json }).toMatchObject({ status: 202 })
  return json as unknown as BackfillJson
}

async function get(daemon: RunningDaemon, path: string): Promise<Json> {
  return (await ask(daemon, path)).json()
}

function ended(daemon: RunningDaemon, id: string): Promise<BackfillJson> {
  return eventually(async () => {
    const status: BackfillJson = await get(daemon, `/backfills/${id}`)
    expect(status.state).not.toBe('running')
    return status
  })
}

async function backfilled(daemon: RunningDaemon, body: object = {}): Promise<BackfillJson> {
  return ended(daemon, (await start(daemon, body)).id)
}

async function done(daemon: RunningDaemon, body: object = {}): Promise<BackfillSummaryJson> {
  const { state, reason, summary } = await backfilled(daemon, body)
  expect({ state, reason }).toEqual({ state: 'done', reason: null })
  return summary as BackfillSummaryJson
}

/** Who has access by the daemon, as the service's own truth names them. */
async function accessBy(daemon: RunningDaemon, { ids }: Market): Promise<readonly string[]> {
  const found: string[] = []
  for (const customerId of new Set(Object.values(ids).map((one) => one.customerId))) {
    const { entitlements } = await get(daemon, `/entitlements/${customerId}?environment=sandbox`)
    for (const one of entitlements) if (one.active) found.push(`${customerId} ${one.productId}`)
  }
  return found.sort()
}

async function truthOf({ service }: Market): Promise<readonly string[]> {
  return (await service.truth()).map(({ customerId, productId }) => `${customerId} ${productId}`).sort()
}

const keptRows = (daemon: RunningDaemon) =>
  daemon.stored((db) => db.selectFrom('backfill_records').select(['kind', 'id']).execute())

describe('a backfill', () => {
  it('stores what no webhook told, and nothing the second time; a dry run says the same before', async () => {
    const market = await openMarket()
    const daemon = await listener(market)
    const before = await accessBy(daemon, market)
    expect(before).not.toEqual(await truthOf(market))

    const trial = await done(daemon, { dryRun: true })
    expect(await accessBy(daemon, market)).toEqual(before)
    expect(await get(daemon, '/events?environment=sandbox&endpoint=backfill')).toMatchObject({ items: [] })

    const real = await done(daemon)
    expect(await accessBy(daemon, market)).toEqual(await truthOf(market))
    expect(real).toEqual(trial)
    expect(real).toMatchObject({
      read: { subscriptions: 4, payments: 11 },
      told: 7,
      stored: {
        total: 10,
        byType: {
          ...{ 'payment.authorized': 2, 'payment.succeeded': 2, 'payment.failed': 1 },
          ...{ 'payment.refunded': 1, 'payment.chargeback': 1 },
          ...{ 'subscription.renewed': 1, 'subscription.canceled': 1, 'subscription.expired': 1 },
        },
      },
      chargebacks: 1,
      differences: { total: 0 },
      unknown: { total: 0, sample: [] },
      unusable: 0,
      access: { gains: 1, losses: 4, otherwise: 0 },
    })
    const again = await done(daemon)
    expect(again).toMatchObject({
      read: { subscriptions: 4, payments: 11 },
      stored: { total: 0, byType: {} },
      access: { gains: 0, losses: 0, otherwise: 0 },
    })
    expect(await keptRows(daemon)).toEqual([])
    expect(JSON.stringify(daemon.logged())).not.toContain(KEY)
  })
})
