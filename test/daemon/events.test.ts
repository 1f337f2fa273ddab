import { request } from 'node:http'
import { dirname, join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
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
      normalizerVersion: 1,
      bodySha256: sha256(GRANT),
      bodyBytes: GRANT.length,
      bodyRemoved: null,
    })
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
      const message = `is not the type of any event here; the closest one is "${closest}"`
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
