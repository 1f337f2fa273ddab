import { describe, expect, it } from 'vitest'
import type { ExplanationJson } from '../../src/handlers/entitlements.js'
import { accountId, BOT_TOKEN, GOLD_ROLE_ID, GUILD_ID } from '../platforms/discord-ids.js'
import { startDiscord } from '../platforms/discord-server.js'
import { eventually } from '../setup/eventually.js'
import { ask, call, NOW, type RunningDaemon, runDaemon, send } from './running-daemon.js'
import { timeOf, wireEvent } from './wire-events.js'

const PATH = '/entitlements/cus_1/pro_gold/explanation'

async function explained(daemon: RunningDaemon, path = PATH) {
  const answer = await ask(daemon, path)
  expect(answer.status).toBe(200)
  return (await answer.json()) as ExplanationJson
}

/** A subscription of two cycles, of which the first is refunded late. */
async function subscribed(): Promise<RunningDaemon> {
  const daemon = await runDaemon()
  const cycle = { subscription: 'sub_1' }
  const bodies = [
    wireEvent('payment.refunded', { ...cycle, id: 'evt_5', payment: 'pay_1', minutes: 50 }),
    wireEvent('payment.authorized', { ...cycle, id: 'evt_1', payment: 'pay_1', minutes: 0 }),
    wireEvent('subscription.created', { ...cycle, id: 'evt_2', payment: 'pay_1', minutes: 0 }),
    wireEvent('payment.authorized', { ...cycle, id: 'evt_3', payment: 'pay_2', minutes: 40 }),
    wireEvent('subscription.renewed', { ...cycle, id: 'evt_4', payment: 'pay_2', minutes: 40 }),
  ]
  for (const body of bodies) expect((await send(daemon, body)).status).toBe(200)
  return daemon
}

describe('GET /entitlements/:customerId/:productId/explanation', () => {
  it('tells of every event in the order in which it counts, whatever the order of arrival', async () => {
    const told = await explained(await subscribed())
    expect(told).toMatchObject({
      customerId: 'cus_1',
      productId: 'pro_gold',
      environment: 'live',
      asOf: new Date(NOW).toISOString(),
      entitlement: { active: true, status: 'active', sources: [{ id: 'sub_1' }] },
      summary: expect.stringContaining('cus_1 has had access to pro_gold since'),
      held: [],
      blocks: [],
      ends: [],
    })
    expect(told.sources).toMatchObject([
      {
        id: 'sub_1',
        kind: 'subscription',
        rail: 'card',
        customerId: 'cus_1',
        intervals: [{ productId: 'pro_gold', from: new Date(timeOf(0)).toISOString(), until: null }],
      },
    ])
    expect(told.sources[0]?.events.map(({ id }) => id)).toEqual(['evt_1', 'evt_2', 'evt_3', 'evt_4', 'evt_5'])
    expect(told.sources[0]?.events[4]).toEqual({
      id: 'evt_5',
      type: 'payment.refunded',
      createdAt: new Date(timeOf(50)).toISOString(),
      receivedAt: new Date(NOW).toISOString(),
      disposition: 'applied',
      row: { rail: 'card', on: 'takeBack' },
      note: { code: 'basis_kept', paymentId: 'pay_1', basis: 'pay_2', since: 'evt_4' },
      changes: [],
      sentence: 'Refund of pay_1: pay_2 has paid this cycle since evt_4.',
    })
  })

  it('gives the same entitlement as the question about it, now and at an instant', async () => {
    const daemon = await subscribed()
    for (const at of ['', `?at=${new Date(timeOf(-5)).toISOString()}`]) {
      const { entitlement } = await explained(daemon, `${PATH}${at}`)
      expect(await (await ask(daemon, `/entitlements/cus_1/pro_gold${at}`)).json()).toMatchObject(entitlement)
    }
  })

  it('lists what waits, whatever came first: events of nobody that name the product, and of the customer that name no source', async () => {
    const daemon = await runDaemon()
    await send(daemon, wireEvent('payment.authorized', { id: 'evt_2', payment: null }))
    await send(daemon, wireEvent('payment.authorized', { id: 'evt_1', customer: null }))
    await send(daemon, wireEvent('payment.authorized', { id: 'evt_3', customer: 'cus_2', payment: null }))
    const { held, sources, summary } = await explained(daemon)
    expect(held).toMatchObject([
      { id: 'evt_1', customerId: null, source: { kind: 'payment', id: 'pay_1' }, reason: 'customer_unknown' },
      { id: 'evt_2', customerId: 'cus_1', source: null, reason: 'source_unknown' },
    ])
    expect(sources).toEqual([])
    expect(summary).toBe('cus_1 has never had access to pro_gold. One event is waiting.')
  })

  it('shows what waits, every block and every coming end with the same fields', async () => {
    const daemon = await runDaemon()
    const ends = new Date(NOW + 86_400_000).toISOString()
    const canceled = { cancel_at_period_end: true, expires_at: ends }
    for (const body of [
      wireEvent('subscription.created', { id: 'evt_1', subscription: 'sub_1', payment: null }),
      wireEvent('subscription.canceled', { id: 'evt_2', subscription: 'sub_1', minutes: 1, data: canceled }),
      wireEvent('payment.authorized', { id: 'evt_3', payment: 'pay_9', customer: null, minutes: 2 }),
    ]) {
      expect((await send(daemon, body)).status).toBe(200)
    }
    await call(daemon, 'PUT', '/customers/cus_1/blocks', { reason: 'fraud' })
    await call(daemon, 'DELETE', '/customers/cus_1/blocks', {})
    const at = new Date(NOW).toISOString()
    const told = await explained(daemon)
    expect(told.held).toEqual([
      {
        id: 'evt_3',
        type: 'payment.authorized',
        createdAt: new Date(timeOf(2)).toISOString(),
        receivedAt: at,
        customerId: null,
        source: { kind: 'payment', id: 'pay_9' },
        reason: 'customer_unknown',
        sentence: 'Authorization of pay_9: waits until an event names its customer.',
      },
    ])
    expect(told.blocks).toEqual([
      {
        productId: null,
        from: at,
        until: expect.stringMatching(/^2026-03-01T12:00:00\.50\dZ$/),
        actor: 'operator',
        reason: 'fraud',
        sentence: expect.stringMatching(/^Every product is blocked from \S+ to \S+\. By operator: fraud\.$/),
      },
    ])
    expect(told.ends).toEqual([
      {
        source: { kind: 'subscription', id: 'sub_1' },
        at: ends,
        reason: 'canceled',
        eventId: 'evt_2',
        sentence: `Access through subscription sub_1 ends at ${ends}: the subscription was canceled.`,
      },
    ])
    expect(told.erasures).toEqual([])
  })

  it('tells of a payment that only failed', async () => {
    const daemon = await runDaemon()
    await send(daemon, wireEvent('payment.failed', { id: 'evt_1' }))
    expect(await explained(daemon)).toMatchObject({
      entitlement: { active: false, status: 'none' },
      sources: [{ id: 'pay_1', intervals: [], events: [{ id: 'evt_1', note: { code: 'nothing_to_end' } }] }],
    })
  })

  it('says why the customer has the roles and groups of the product, or not', async () => {
    const discord = await startDiscord()
    const role = { adapter: 'discord', guildId: GUILD_ID, roleId: GOLD_ROLE_ID }
    const daemon = await runDaemon({
      config: {
        products: { pro_gold: { targets: [role] } },
        sync: { discord: { botToken: BOT_TOKEN, apiUrl: discord.url } },
      },
    })
    await send(daemon, wireEvent('payment.authorized'))
    const membership = {
      ...{ target: `discord:${GUILD_ID}:${GOLD_ROLE_ID}`, platform: 'discord', desired: true },
      ...{ applied: 'unknown', appliedAt: null },
    }
    expect((await explained(daemon)).memberships).toEqual([
      {
        ...membership,
        ...{ accountId: null, state: 'unlinked', desiredSince: null, lastError: null },
        next: { action: 'give', waitsFor: 'customer', at: null },
        sentence: 'No Discord account is linked to cus_1: link one, and it will get the role.',
      },
    ])
    await call(daemon, 'PUT', '/customers/cus_1/identities', { communityId: accountId(1) })
    // Asked of an earlier instant, they are still told as they are now.
    const earlier = `${PATH}?at=${new Date(timeOf(-5)).toISOString()}`
    await eventually(async () => {
      const { entitlement, memberships } = await explained(daemon, earlier)
      expect(entitlement.active).toBe(false)
      expect(memberships).toEqual([
        {
          ...membership,
          ...{ accountId: accountId(1), state: 'waiting', desiredSince: new Date(NOW).toISOString() },
          lastError: { code: 'member_not_in_guild', message: expect.any(String) },
          next: { action: 'give', waitsFor: 'customer', at: null },
          sentence: expect.stringMatching(
            /^Discord account \d+ should get the role, because of pro_gold\. .+/,
          ),
        },
      ])
    })
    expect((await explained(daemon, '/entitlements/cus_1/pro_other/explanation')).memberships).toEqual([])
    expect((await explained(daemon, `${PATH}?environment=sandbox`)).memberships).toEqual([])
  })

  it('says of a customer never seen that nothing is known about them', async () => {
    const daemon = await subscribed()
    expect(await explained(daemon, '/entitlements/cus_9/pro_gold/explanation')).toMatchObject({
      entitlement: { active: false, status: 'none' },
      summary: 'Nothing is known about cus_9 in live: no event names them.',
      sources: [],
    })
    expect(await explained(daemon, `${PATH}?environment=sandbox`)).toMatchObject({
      environment: 'sandbox',
      summary: 'Nothing is known about cus_1 in sandbox: no event names them.',
    })
  })

  it('tells no personal data', async () => {
    const daemon = await runDaemon()
    const body = JSON.parse(wireEvent('payment.authorized'))
    body.data.customer = { id: 'cus_1', email: 'told@example.com', name: 'Ada Told' }
    await send(daemon, JSON.stringify(body))
    const text = JSON.stringify(await explained(daemon))
    expect(text).toContain('cus_1 has had access')
    expect(text).not.toMatch(/told@example\.com|Ada Told/)
  })
})
