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
import { type Relay, startRelay } from './relay.js'

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
  readonly relay: Relay
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
  const relay = await startRelay(service, PAGE_SIZE)
  return {
    ...{ service, relay, ids, told: [...told, ...news.filter(isQuiet)] },
    lost: news.filter((event) => !isQuiet(event)),
    now: Date.parse((await service.data('GET /sandbox/clock')).now) + 60_000,
  }
}

const instantly: DaemonOptions['sleep'] = async (_, signal) => signal.throwIfAborted()

const configOf = ({ relay }: Market, more: Record<string, unknown> = {}, provider: object = {}) => ({
  ...ENDPOINTS,
  provider: { sandbox: { baseUrl: relay.url, apiKey: KEY, legacy: true, ...provider } },
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

/** The path of a request, without where its page begins. */
const pathOf = (asked: string): string => asked.replace(/[?&](cursor|page)=[^&]*/, '')

const refuse =
  (status: number, error: string, headers: Readonly<Record<string, string>> = {}): Relay['before'] =>
  (_, res) => {
    const body = JSON.stringify({ success: false, error, message: 'No.' })
    res.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body)
    return true
  }

/** The same, only for the requests that match, and only so often. */
function sometimes(pattern: RegExp, times: number, answer: Relay['before']): Relay['before'] {
  let left = times
  return (path, res, req) => {
    if (!pattern.test(path) || left === 0) return false
    left -= 1
    return answer(path, res, req)
  }
}

const ALWAYS = Number.POSITIVE_INFINITY
const PAYMENTS_PAGE_3 = () => {
  const cursors = new Set<string>()
  return (path: string): boolean => {
    if (!path.startsWith('GET /v3/payments?cursor=')) return false
    cursors.add(path)
    return cursors.size >= 2
  }
}

describe('a service that fails', () => {
  it.each<[string, Relay['before']]>([
    ['429 without Retry-After', refuse(429, 'RATE_LIMITED')],
    ['500', refuse(500, 'INTERNAL')],
    [
      'a connection that is cut',
      (_, res) => {
        res.writeHead(200, { 'content-type': 'application/json' }).write('{"success":true,"da')
        setImmediate(() => res.destroy())
        return true
      },
    ],
  ])('for a while does not keep a backfill from its end: %s', async (_, answer) => {
    const market = await openMarket()
    const daemon = await listener(market)
    market.relay.before = sometimes(/cursor=/, 5, answer)
    expect(await done(daemon)).toMatchObject({ stored: { total: 10 }, differences: { total: 0 } })
    expect(await accessBy(daemon, market)).toEqual(await truthOf(market))
  })

  it.each<[string, Relay['before'], string]>([
    ['429 without Retry-After', refuse(429, 'RATE_LIMITED'), 'limits how often'],
    ['429 for an hour', refuse(429, 'RATE_LIMITED', { 'retry-after': '3600' }), 'in 3600 seconds'],
    ['500', refuse(500, 'INTERNAL'), 'The payments API fails'],
    ['a key that it no longer takes', refuse(401, 'UNAUTHORIZED'), 'Check provider.sandbox.apiKey'],
    [
      'a page without an envelope',
      (_, res) => {
        res.writeHead(200, { 'content-type': 'text/html' }).end('<h1>Hello</h1>')
        return true
      },
      'is not the payments API’s'.replace('’', "'"),
    ],
  ])('for long has a backfill fail, and the next one goes on where it was: %s', async (_, answer, reason) => {
    const market = await openMarket()
    const daemon = await listener(market)
    const isThirdPage = PAYMENTS_PAGE_3()
    market.relay.before = (path, ...more) => isThirdPage(path) && answer(path, ...more)
    const failed = await backfilled(daemon)
    expect(failed).toMatchObject({ state: 'failed', summary: null, progress: { phase: 'payments', read: 8 } })
    expect(failed.reason).toContain(reason)
    expect(failed.reason).not.toContain(KEY)
    const before = [...market.relay.asked]

    market.relay.before = () => false
    market.relay.asked.splice(0)
    const next = await backfilled(daemon)
    expect(next).toMatchObject({ id: failed.id, state: 'done', summary: { stored: { total: 10 } } })
    const again = market.relay.asked.filter((path) => before.includes(path))
    expect(again).toEqual([before.at(-1)])
    expect(await accessBy(daemon, market)).toEqual(await truthOf(market))
    expect(JSON.stringify(daemon.logged())).not.toContain(KEY)
  })

  it('to know a cursor has the list begin again, but not for ever', async () => {
    const market = await openMarket()
    const daemon = await listener(market)
    const expired = refuse(400, 'INVALID_CURSOR')
    market.relay.before = sometimes(/payments\?cursor=/, 1, expired)
    expect(await done(daemon)).toMatchObject({ read: { payments: 11 }, stored: { total: 10 } })
    expect(market.relay.asked.filter((path) => path === 'GET /v3/payments')).toHaveLength(2)

    market.relay.before = sometimes(/payments\?cursor=/, ALWAYS, expired)
    const failed = await backfilled(daemon)
    expect(failed).toMatchObject({ state: 'failed' })
    expect(failed.reason).toContain('Read the list again from its beginning')
  })

  it('to end a list, whose pages repeat, has the backfill fail with that', async () => {
    const market = await openMarket()
    const daemon = await listener(market)
    let first: unknown
    market.relay.after = (path, json) => {
      if (pathOf(path) !== 'GET /v3/payments') return json
      first ??= json
      return first
    }
    expect(await backfilled(daemon)).toMatchObject({
      state: 'failed',
      reason: expect.stringMatching(/a page repeats|where the next one begins/),
    })
  })
})

describe('a record', () => {
  it('that changes while it is read is read again', async () => {
    const market = await openMarket()
    const daemon = await listener(market)
    const { canceled } = market.ids
    // Its cancellation comes after it was listed, and before it is reported.
    const late = market.lost.filter((event) => JSON.stringify(event).includes(canceled?.id ?? ''))
    let isTold = false
    market.relay.before = async (path) => {
      if (!isTold && path === 'GET /v3/payments') {
        isTold = true
        await tell(daemon, late, market.now)
      }
      return false
    }
    expect(await done(daemon)).toMatchObject({ differences: { total: 0 }, stored: { total: 9 } })
    expect(market.relay.asked).toContain(`GET /v3/subscriptions/${canceled?.id}`)
    expect(await accessBy(daemon, market)).toEqual(await truthOf(market))
  })

  it('that keeps changing is listed as different', async () => {
    const market = await openMarket()
    const daemon = await listener(market)
    const { quiet } = market.ids
    const [event] = market.told.filter((one) => JSON.stringify(one).includes(quiet?.id ?? '')).slice(-1)
    let serial = 0
    market.relay.before = async (path) => {
      if (path === 'GET /v3/payments' || path.endsWith(quiet?.id ?? '-')) {
        serial += 1
        await tell(daemon, [{ ...event, id: `evt_again_${serial}` }], market.now)
      }
      return false
    }
    const { differences } = await done(daemon)
    expect(differences).toEqual({
      total: 1,
      byCode: { read_again: 1 },
      sample: [
        {
          ...{ code: 'read_again', recordId: quiet?.id, about: null },
          text: 'may have changed while it was read: read it again',
        },
      ],
    })
    expect(market.relay.asked.filter((path) => path.endsWith(quiet?.id ?? '-'))).toHaveLength(3)
  })

  it('that the lists leave out is asked for, where it gives access, and counts as unknown if it is not there', async () => {
    const market = await openMarket()
    const daemon = await listener(market)
    const hidden = [market.ids.canceled?.id, market.ids.settled?.id, market.ids.refunded?.id]
    market.relay.after = (_, json) => {
      const { items } = json.data ?? {}
      if (items === undefined) return json
      const left = items.filter(({ id }: Json) => !hidden.includes(id))
      return { ...json, data: { ...json.data, items: left } }
    }
    market.relay.before = sometimes(
      new RegExp(`payments/${market.ids.settled?.id}`),
      1,
      refuse(404, 'PAYMENT_NOT_FOUND'),
    )
    const summary = await done(daemon)
    expect(summary).toMatchObject({
      unknown: { total: 1, sample: [{ kind: 'payment', id: market.ids.settled?.id }] },
      stored: { total: 10 },
    })
    expect(await accessBy(daemon, market)).toEqual(await truthOf(market))
  })

  it('that cannot be used is listed, and does not keep the others from being read', async () => {
    const market = await openMarket()
    const daemon = await listener(market)
    const { id } = market.ids.settled ?? {}
    market.relay.after = (_, json) => {
      const items = json.data?.items?.map((one: Json) =>
        one.id === id ? { ...one, statusTimeline: 7 } : one,
      )
      return items === undefined ? json : { ...json, data: { ...json.data, items } }
    }
    expect(await done(daemon)).toMatchObject({
      unusable: 1,
      differences: { total: 1, sample: [{ code: 'record_unusable', recordId: id }] },
      stored: { total: 10 },
      read: { payments: 11 },
    })
  })
})

describe('a daemon that stops', () => {
  it('goes on at its next start at the page that it was at, wherever that was', async () => {
    const market = await openMarket()
    const whole = await listener(market)
    const wanted = await done(whole)
    const all = market.relay.asked.splice(0)
    for (const dryRun of [false, true]) {
      let daemon = await listener(market)
      const { id } = await start(daemon, { dryRun })
      const asked: string[] = []
      let restarts = 0
      // Each daemon has one more request answered, and is stopped while the next one waits.
      for (;;) {
        restarts += 1
        expect(restarts).toBeLessThanOrEqual(2 * all.length)
        const held = Promise.withResolvers<void>()
        let answered = 0
        market.relay.before = async () => {
          answered += 1
          if (answered <= 1) return false
          held.resolve()
          await new Promise(() => {})
          return true
        }
        daemon = await daemon.restart()
        const status = ended(daemon, id).then(() => 'ended')
        const what = await Promise.race([status, held.promise.then(() => 'held')])
        asked.push(...market.relay.asked.splice(0).slice(0, answered))
        if (what === 'ended') break
      }
      const { summary } = await get(daemon, `/backfills/${id}`)
      expect(summary).toEqual(wanted)
      expect(restarts).toBeGreaterThan(all.length / 2)
      // Nothing but the request that was waiting was repeated.
      const repeats = asked.filter((path, i) => asked.indexOf(path) !== i && path !== asked[i - 1])
      expect(repeats).toEqual([])
      expect(await keptRows(daemon)).toEqual([])
      if (!dryRun) expect(await accessBy(daemon, market)).toEqual(await truthOf(market))
    }
  })
})
