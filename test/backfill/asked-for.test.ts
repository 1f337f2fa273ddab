import { describe, expect, it } from 'vitest'
import { call } from '../daemon/running-daemon.js'
import { DAY_MS } from '../sandbox/service.js'
import { eventually } from '../setup/eventually.js'
import { accessBy, backfilled, configOf, done, get, listener, openMarket, truthOf } from './market.js'

describe('what is asked for', () => {
  it('may be payments alone, subscriptions alone, or one customer', async () => {
    const market = await openMarket()
    const { relay, ids } = market
    const lists = () => new Set(relay.asked.splice(0).map((path) => path.replace(/[?&].*/, '')))
    const daemon = await listener(market)
    const payments = await done(daemon, { subscriptions: false, dryRun: true })
    expect(payments).toMatchObject({ read: { payments: 11, subscriptions: 0 }, stored: { total: 7 } })
    expect([...lists()]).toEqual(['GET /api/payment', 'GET /v3/payments'])
    const subscriptions = await done(daemon, { payments: false, dryRun: true })
    expect(subscriptions).toMatchObject({ read: { payments: 0, subscriptions: 4 }, chargebacks: null })
    expect([...lists()]).toEqual(['GET /v3/subscriptions'])

    const customerId = ids.canceled?.customerId
    const one = await done(daemon, { customerId })
    expect(one).toMatchObject({
      read: { payments: 1, subscriptions: 1 },
      stored: { byType: { 'subscription.canceled': 1 } },
      access: { losses: 1, sample: [{ customerId }] },
    })
    expect(lists()).not.toContain('GET /v3/payments')
    // Nothing is known here of this one: the lists are looked through.
    const unheard = await done(daemon, { customerId: ids.unheard?.customerId })
    expect(unheard).toMatchObject({ read: { payments: 1, subscriptions: 0 }, stored: { total: 2 } })
    expect(lists()).toContain('GET /v3/payments')
  })

  it('needs access to the service', async () => {
    const market = await openMarket()
    const daemon = await listener(market)
    expect(await call(daemon, 'POST', '/backfills?environment=live', {})).toMatchObject({
      status: 409,
      json: { code: 'payments_api_not_configured', detail: expect.stringContaining('provider.live') },
    })
    expect(await call(daemon, 'DELETE', '/backfills/bkf_odd')).toMatchObject({
      status: 404,
      json: { code: 'backfill_not_found' },
    })
  })

  it('may be a sandbox whose clock is far ahead of ours', async () => {
    const market = await openMarket()
    const daemon = await listener({ ...market, now: market.now - 60 * DAY_MS })
    expect(await done(daemon)).toMatchObject({
      stored: { total: 10 },
      differences: { total: 0 },
      unusable: 0,
    })
    expect(await done(daemon)).toMatchObject({ stored: { total: 0 } })
    expect(await accessBy(daemon, market)).toEqual(await truthOf(market))
  })

  it('says that chargebacks are not known where the legacy API is not configured', async () => {
    const market = await openMarket()
    const daemon = await listener(market, { config: configOf(market, {}, { legacy: false }) })
    expect(await done(daemon)).toMatchObject({ chargebacks: null, stored: { total: 9 } })
    expect(market.relay.asked).not.toContainEqual(expect.stringContaining('/api/payment'))
  })
})

describe('the schedule', () => {
  it('runs a whole backfill at its times, and makes up for one that a stopped daemon missed', async () => {
    const market = await openMarket()
    const config = configOf(market, { backfill: { schedule: '15 4 * * *' } })
    const first = await listener(market, { config })
    const { id } = await backfilled(first)
    await first.stop()
    const { folder } = first
    const later = await listener(market, { config, folder, now: market.now + 60_000 })
    expect((await get(later, '/backfills')).items).toHaveLength(1)
    await later.stop()
    const nextDay = await listener(market, { config, folder, now: market.now + 24 * 60 * 60 * 1000 })
    const items = await eventually(async () => {
      const known = (await get(nextDay, '/backfills')).items
      expect(known).toHaveLength(2)
      expect(known[0].state).toBe('done')
      return known
    })
    // A daemon that stops does not wait for it, and the next one goes on.
    const held = Promise.withResolvers<void>()
    market.relay.before = () => {
      held.resolve()
      return new Promise(() => {})
    }
    await nextDay.stop()
    const dayAfter = await listener(market, { config, folder, now: market.now + 48 * 60 * 60 * 1000 })
    await held.promise
    await dayAfter.stop()
    market.relay.before = () => false
    const last = await listener(market, { config, folder, now: market.now + 49 * 60 * 60 * 1000 })
    await eventually(async () => {
      const known = (await get(last, '/backfills')).items
      expect(known).toHaveLength(3)
      expect(known[0].state).toBe('done')
    })
    expect(items).toMatchObject([
      { dryRun: false, payments: true, subscriptions: true, customerId: null },
      { id },
    ])
  })
})
