import { describe, expect, it } from 'vitest'
import { call, SANDBOX_SECRET, send } from '../daemon/running-daemon.js'
import type { Json } from '../sandbox/service.js'
import { eventually } from '../setup/eventually.js'
import { ENGINE } from '../world.js'
import { accessBy, configOf, done, ended, get, listener, openMarket, start, tell, truthOf } from './market.js'

const ENDPOINTS = { sandbox: { environment: 'sandbox', secrets: [SANDBOX_SECRET], aheadAtMost: '10y' } }

describe('a backfill counts what it did itself', () => {
  // On PostgreSQL an instance asks only while it leads, which it does after a minute.
  it.skipIf(ENGINE === 'postgres')(
    'and not what was reported meanwhile for an event that waited',
    async () => {
      const market = await openMarket()
      const { relay, ids, now } = market
      const daemon = await listener(market)
      const id = String(ids.unheard?.id)
      const { createdAt } = await market.service.data(`GET /v3/payments/${id}`)
      const event = { id: 'evt_held', type: 'payment.authorized', createdAt, data: { id, method: 'CARD' } }
      await tell(daemon, [event], now)
      relay.before = (path) => (path === 'GET /v3/payments' ? new Promise(() => {}) : false)
      const { id: run } = await start(daemon)
      await eventually(() => expect(relay.asked).toContain('GET /v3/payments'))
      daemon.setNow(now + 120_000)
      const goOn = Promise.withResolvers<boolean>()
      relay.before = (path) => (path === 'GET /v3/payments' ? goOn.promise : false)
      const later = await daemon.restart()
      await eventually(async () => {
        const { items } = await get(later, '/events?environment=sandbox&endpoint=backfill')
        expect(items.map(({ type }: Json) => type)).toEqual(['payment.succeeded'])
      })
      goOn.resolve(false)
      const { state, summary } = await ended(later, run)
      expect(state).toBe('done')
      // Of the ten that it would have stored, two were of that payment: one has come, and the other one was asked for.
      expect(summary).toMatchObject({
        stored: { total: 8, byType: { 'payment.authorized': 1, 'payment.succeeded': 1 } },
        access: { gains: 0, losses: 4 },
      })
      expect(await accessBy(later, market)).toEqual(await truthOf(market))
    },
  )

  it('and as known before only what was, however often it is broken off', async () => {
    const whole = await openMarket()
    const wanted = await done(await listener(whole))
    const market = await openMarket()
    const { relay, ids, now } = market
    const daemon = await listener(market)
    const quiet = String(ids.quiet?.id)
    const [event] = market.told.filter((one) => JSON.stringify(one).includes(quiet)).slice(-1)
    const again = `GET /v3/subscriptions/${quiet}`
    let isTold = false
    relay.before = async (path) => {
      if (path === 'GET /v3/payments' && !isTold) {
        isTold = true
        await tell(daemon, [{ ...event, id: 'evt_again' }], now)
      }
      // By then, what was missing of the other subscriptions is stored, and this is not saved.
      return path === again ? new Promise(() => {}) : false
    }
    const { id } = await start(daemon)
    await eventually(() => expect(relay.asked).toContain(again))
    const reported = await get(daemon, '/events?environment=sandbox&endpoint=backfill&limit=100')
    expect(reported.items.map(({ type }: Json) => type)).toContain('subscription.canceled')
    relay.before = () => false
    const { summary } = await ended(await daemon.restart(), id)
    expect(summary).toEqual(wanted)
  })
})

describe('an endpoint that is named backfill, as 1.0 allowed it', () => {
  it('keeps its events apart from those that a backfill reports', async () => {
    const market = await openMarket()
    const { relay, ids, told, lost, now } = market
    const backfill = { ...ENDPOINTS.sandbox, secrets: ['whsec_named_backfill_0123456789'] }
    const config = configOf(market, { endpoints: { ...ENDPOINTS, backfill } })
    const daemon = await listener({ ...market, told: [] }, { config })
    const hear = async (events: readonly Json[]) => {
      const how = { endpoint: 'backfill', secret: 'whsec_named_backfill_0123456789' }
      for (const event of events) {
        const timestamp = String(Math.floor(now / 1000))
        expect((await send(daemon, JSON.stringify(event), { ...how, timestamp })).status).toBe(200)
      }
    }
    await hear(told)
    const late = lost.filter((event) => JSON.stringify(event).includes(ids.canceled?.id ?? ''))
    expect(late.length).toBeGreaterThan(0)
    let isTold = false
    relay.before = async (path) => {
      if (!isTold && path === 'GET /v3/payments') {
        isTold = true
        await hear(late)
      }
      return false
    }
    expect(await done(daemon)).toMatchObject({
      stored: { total: 9 },
      differences: { total: 0 },
      access: { gains: 1, losses: 3 },
    })
    expect(await accessBy(daemon, market)).toEqual(await truthOf(market))

    const filter = { endpoint: 'backfill' }
    const replay = await call(daemon, 'POST', '/replays?environment=sandbox', { filter })
    expect(replay.status).toBe(202)
    await eventually(async () => {
      const { state, summary } = await get(daemon, `/replays/${replay.json.id}`)
      expect({ state, ...summary }).toMatchObject({
        state: 'done',
        changed: 0,
        skipped: 0,
        gains: 0,
        losses: 0,
      })
    })
    expect(await done(daemon)).toMatchObject({ stored: { total: 0 }, access: { gains: 0, losses: 0 } })
  })
})
