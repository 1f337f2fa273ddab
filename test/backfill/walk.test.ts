import { describe, expect, it } from 'vitest'
import { call } from '../daemon/running-daemon.js'
import { type Json, KEY } from '../sandbox/service.js'
import { eventually } from '../setup/eventually.js'
import { ENGINE } from '../world.js'
import { accessBy, backfilled, done, get, keptRows, listener, openMarket, start, truthOf } from './market.js'

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

describe('a daemon that stops', () => {
  it('goes on at its next start at the page that it was at, wherever that was', async () => {
    const market = await openMarket()
    const whole = await listener(market)
    const wanted = await done(whole)
    const all = market.relay.asked.splice(0)
    for (const [dryRun, each] of [
      [false, ENGINE === 'sqlite' ? 1 : 3],
      [true, 4],
    ] as const) {
      let daemon = await listener(market)
      market.relay.before = () => new Promise(() => {})
      const { id } = await start(daemon, { dryRun })
      await eventually(() => expect(market.relay.asked).toHaveLength(1))
      market.relay.asked.splice(0)
      const asked: string[] = []
      let restarts = 0
      // Each daemon has so many more requests answered, and is stopped while the next one waits.
      for (;;) {
        restarts += 1
        expect(restarts).toBeLessThanOrEqual(2 * all.length)
        let isHeld = false
        let answered = 0
        market.relay.before = async () => {
          answered += 1
          if (answered <= each) return false
          isHeld = true
          await new Promise(() => {})
          return true
        }
        daemon = await daemon.restart()
        const running = daemon
        const what = await eventually(async () => {
          if (isHeld) return 'held'
          expect(await get(running, `/backfills/${id}`)).not.toMatchObject({ state: 'running' })
          return 'ended'
        })
        asked.push(...market.relay.asked.splice(0).slice(0, answered))
        if (what === 'ended') break
      }
      const { summary } = await get(daemon, `/backfills/${id}`)
      expect(summary).toEqual(wanted)
      expect(restarts).toBeGreaterThan(all.length / each / 2)
      // Nothing but the request that was waiting was repeated.
      const repeats = asked.filter((path, i) => asked.indexOf(path) !== i && path !== asked[i - 1])
      expect(repeats).toEqual([])
      expect(await keptRows(daemon)).toEqual([])
      if (!dryRun) expect(await accessBy(daemon, market)).toEqual(await truthOf(market))
    }
  })
})

describe('a backfill that runs', () => {
  it('is joined if it runs, refused if something else runs, and can be stopped', async () => {
    const market = await openMarket()
    const daemon = await listener(market)
    const held = Promise.withResolvers<void>()
    market.relay.before = async (path) => {
      if (!path.includes('/v3/payments?cursor=')) return false
      held.resolve()
      await new Promise(() => {})
      return true
    }
    const [{ id }, atOnce] = await Promise.all([start(daemon), start(daemon)])
    expect([atOnce, await start(daemon)]).toMatchObject([{ id }, { id }])
    await held.promise
    const path = '/backfills?environment=sandbox'
    const other = await call(daemon, 'POST', path, { dryRun: true })
    expect(other).toMatchObject({ status: 409, json: { code: 'backfill_running' } })
    expect(await get(daemon, '/backfills')).toMatchObject({
      items: [{ id, state: 'running', progress: { phase: 'payments', read: 6 } }],
    })
    expect((await keptRows(daemon)).length).toBeGreaterThan(0)
    const stopped = await call(daemon, 'DELETE', `/backfills/${id}`)
    expect(stopped).toMatchObject({
      status: 200,
      json: { id, state: 'stopped', reason: expect.stringMatching(/^It was stopped\./) },
    })
    expect(await keptRows(daemon)).toEqual([])

    market.relay.before = () => false
    const next = await backfilled(daemon)
    expect(next.id).not.toBe(id)
    expect(next).toMatchObject({ state: 'done' })
    expect(await get(daemon, '/backfills?limit=1')).toMatchObject({
      items: [{ id: next.id }],
      pagination: { hasMore: true },
    })
    expect(
      await get(daemon, `/backfills?limit=1&cursor=${Buffer.from(next.id).toString('base64url')}`),
    ).toMatchObject({
      items: [{ id, state: 'stopped' }],
    })
  })
})

describe('a person who is erased', () => {
  it.each([false, true])('while records are kept leaves nothing of theirs (dry run: %s)', async (dryRun) => {
    const market = await openMarket()
    const { customerId = '', id = '' } = market.ids.canceled ?? {}
    // The service tells their email address with the record, too.
    market.relay.after = (path, json) => {
      const items = json.data?.items?.map((one: Json) => ({
        ...one,
        customerEmail: `${one.customerId}@example.com`,
      }))
      return path.includes('/v3/subscriptions') && items ? { ...json, data: { ...json.data, items } } : json
    }
    const daemon = await listener(market)
    const before = await accessBy(daemon, market)
    let erasing: Promise<unknown> | null = null
    market.relay.before = async (path) => {
      if (path === 'GET /v3/payments') {
        erasing ??= call(daemon, 'DELETE', `/customers/${customerId}?environment=sandbox`)
        expect(await erasing).toMatchObject({ status: 200 })
        const rows = await daemon.stored((db) => db.selectFrom('backfill_records').selectAll().execute())
        expect(rows.map((row) => row.id)).toContain(id)
        expect(JSON.stringify(rows)).not.toContain(`${customerId}@example.com`)
      }
      return false
    }
    const summary = await done(daemon, { dryRun })
    expect(summary).toMatchObject({
      read: { subscriptions: 4 },
      stored: { byType: { 'subscription.canceled': 1 } },
    })
    expect(market.relay.asked).toContain(`GET /v3/subscriptions/${id}`)
    // An erasure ends their access by itself.
    const ofOthers = (all: readonly string[]) => all.filter((one) => !one.startsWith(customerId))
    const after = ofOthers(await accessBy(daemon, market))
    expect(after).toEqual(ofOthers(dryRun ? before : await truthOf(market)))
    const bodies = await daemon.stored((db) => db.selectFrom('events').select('body').execute())
    expect(bodies.some(({ body }) => body?.includes(`${customerId}@example.com`))).toBe(false)
  })
})
