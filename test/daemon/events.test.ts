import { request } from 'node:http'
import { dirname, join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { NORMALIZER_VERSION } from '../../src/provider/event.js'
import { ask, NOW, type RunningDaemon, runDaemon, send } from './running-daemon.js'
import { BROKEN, BROKEN_ID, GRANT, HELD, sha256 } from './stored-events.js'
import { wireEvent } from './wire-events.js'

interface Listed {
  readonly items: readonly { readonly id: string }[]
  readonly pagination: { readonly nextCursor: string | null; readonly hasMore: boolean }
}

async function list(daemon: RunningDaemon, query = ''): Promise<Listed> {
  const answer = await ask(daemon, `/events${query}`)
  expect(answer.status).toBe(200)
  return (await answer.json()) as Listed
}

async function idsOf(daemon: RunningDaemon, query: string): Promise<readonly string[]> {
  return (await list(daemon, query)).items.map(({ id }) => id)
}

describe('GET /events', () => {
  it('lists what was received, the newest first, with what became of it', async () => {
    const daemon = await runDaemon()
    for (const body of [GRANT, HELD, BROKEN, GRANT]) await send(daemon, body)
    const { items, pagination } = await list(daemon)
    expect(pagination).toEqual({ nextCursor: null, hasMore: false })
    const received = new Date(NOW).toISOString()
    expect(items).toMatchObject([
      { id: BROKEN_ID, type: null, disposition: 'quarantined', reason: 'not_utf8', bodyBytes: 4 },
      {
        id: 'evt_2',
        generation: 'v2',
        type: 'checkout.succeeded',
        disposition: 'held',
        reason: 'customer_unknown',
        customerId: null,
        source: { kind: 'payment', id: 'pay_2' },
      },
      { id: 'evt_1', disposition: 'applied', deliveries: 2, receivedAt: received, lastReceivedAt: received },
    ])
    expect(items[2]).toEqual({
      id: 'evt_1',
      environment: 'live',
      endpoint: 'live',
      generation: 'v3',
      type: 'payment.authorized',
      disposition: 'applied',
      reason: null,
      createdAt: '2026-03-01T11:00:00.500Z',
      receivedAt: received,
      lastReceivedAt: received,
      deliveries: 2,
      customerId: 'cus_1',
      source: { kind: 'payment', id: 'pay_1' },
      conflicts: 0,
      normalizerVersion: NORMALIZER_VERSION,
      bodySha256: sha256(GRANT),
      bodyBytes: GRANT.length,
      bodyRemoved: null,
    })
  })

  it('finds the events of a payment, of a subscription, and those with another body under their id', async () => {
    const daemon = await runDaemon()
    const about = (id: string, type: string, payment: string | null, subscription: string | null) =>
      wireEvent(type, { id, payment, subscription })
    for (const body of [
      about('evt_once', 'payment.authorized', 'pay_once', null),
      about('evt_first', 'payment.authorized', 'pay_first', null),
      about('evt_created', 'subscription.created', 'pay_first', 'sub_1'),
      about('evt_renewed', 'subscription.renewed', 'pay_second', 'sub_1'),
      about('evt_second', 'payment.authorized', 'pay_second', null),
      about('evt_held', 'checkout.succeeded', 'pay_once', null),
      wireEvent('payment.authorized', { id: 'evt_nobody', customer: null, payment: 'pay_nobody' }),
      about('evt_once', 'payment.refunded', 'pay_once', null),
      about('evt_second', 'payment.refunded', 'pay_second', null),
    ])
      expect((await send(daemon, body)).status).toBe(200)
    for (const [query, ids] of [
      ['?paymentId=pay_once', ['evt_held', 'evt_once']],
      ['?paymentId=pay_once&type=payment.authorized', ['evt_once']],
      ['?paymentId=pay_first', ['evt_created', 'evt_first']],
      ['?paymentId=pay_nobody', ['evt_nobody']],
      ['?paymentId=pay_none', []],
      ['?paymentId=pay_once&environment=sandbox', []],
      ['?subscriptionId=sub_1', ['evt_second', 'evt_renewed', 'evt_created', 'evt_first']],
      ['?subscriptionId=sub_1&paymentId=pay_second', ['evt_second', 'evt_renewed']],
      ['?subscriptionId=sub_1&paymentId=pay_once', []],
      ['?conflicts=true', ['evt_second', 'evt_once']],
      ['?conflicts=true&paymentId=pay_once', ['evt_once']],
      ['?conflicts=true&environment=sandbox', []],
    ] as const) {
      expect([query, await idsOf(daemon, query)]).toEqual([query, ids])
    }
    const first = await list(daemon, '?subscriptionId=sub_1&limit=3')
    const rest = `?subscriptionId=sub_1&limit=3&cursor=${first.pagination.nextCursor}`
    expect([first.items.length, await idsOf(daemon, rest)]).toEqual([3, ['evt_first']])
  })

  it('shows what its filter means', async () => {
    const daemon = await runDaemon()
    for (const body of [GRANT, HELD, BROKEN]) await send(daemon, body)
    for (const [query, ids] of [
      ['?disposition=held', ['evt_2']],
      ['?disposition=quarantined', [BROKEN_ID]],
      ['?type=checkout.succeeded', ['evt_2']],
      ['?customerId=cus_1', ['evt_1']],
      ['?endpoint=live&disposition=applied', ['evt_1']],
      ['?from=2026-03-01T12:00:01Z', []],
      ['?to=2026-03-01T12:00:01Z&type=payment.authorized', ['evt_1']],
      ['?environment=sandbox', []],
    ] as const) {
      expect([query, await idsOf(daemon, query)]).toEqual([query, ids])
    }
  })

  it('names the type that a wrong one was probably meant to be', async () => {
    const daemon = await runDaemon()
    await send(daemon, HELD)
    for (const [type, closest] of [
      ['CHECKOUT_SUCCESS', 'checkout.succeeded'],
      ['checkout.suceeded', 'checkout.succeeded'],
    ]) {
      const answer = await ask(daemon, `/events?type=${type}`)
      const message = `must be a known type: no stored event has the type "${type}"; the closest one is "${closest}"`
      expect(await answer.json()).toMatchObject({ status: 400, errors: [{ path: 'type', message }] })
    }
  })

  it('goes on at its cursor until everything was told once', async () => {
    const daemon = await runDaemon()
    for (const i of [1, 2, 3, 4, 5]) {
      await send(daemon, wireEvent('payment.settled', { id: `evt_${i}`, payment: `pay_${i}` }))
    }
    const told: string[] = []
    let query = '?limit=2'
    let pages = 0
    for (let hasMore = true; hasMore; pages += 1) {
      const { items, pagination } = await list(daemon, query)
      told.push(...items.map(({ id }) => id))
      hasMore = pagination.hasMore
      query = `?limit=2&cursor=${pagination.nextCursor}`
    }
    expect(told).toEqual(['evt_5', 'evt_4', 'evt_3', 'evt_2', 'evt_1'])
    expect(pages).toBe(3)
  })
})

it('stored events are shown without a key at the local socket', async () => {
  const daemon = await runDaemon()
  await send(daemon, GRANT)
  const socketPath = join(dirname(daemon.databaseFile), 'latchkey.sock')
  const body = await new Promise<Buffer>((resolve, reject) => {
    request({ socketPath, path: '/events/evt_1/body' }, (res) => resolve(buffer(res)))
      .on('error', reject)
      .end()
  })
  expect(body.toString()).toBe(GRANT)
})
