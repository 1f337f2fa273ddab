import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { IncomingMessage } from 'node:http'
import { connect, type Socket } from 'node:net'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { appendChanges } from '../../src/store/changes.js'
import { eventually } from '../setup/eventually.js'
import { ENGINE, keyEntry, openStoreAt } from '../world.js'
import { API_KEY, ask, NOW, type RunningDaemon, runDaemon, send, sharedDaemon } from './running-daemon.js'
import { openStream, type StreamClient, type StreamedChange } from './stream-client.js'
import { wireEvent } from './wire-events.js'

let customers = 0

/** Payments of new customers, all at once. */
async function pay(daemon: RunningDaemon, count = 1, environment: 'live' | 'sandbox' = 'live') {
  const sent = Array.from({ length: count }, () => {
    customers += 1
    const event = { customer: `cus_${customers}`, payment: `pay_${customers}`, environment }
    return send(daemon, wireEvent('payment.authorized', event), { endpoint: environment })
  })
  for (const { status } of await Promise.all(sent)) expect(status).toBe(200)
}

/** The end of the log: a customer who was not asked about has no kept answer. */
async function newest(daemon: RunningDaemon): Promise<string> {
  customers += 1
  const answer = await ask(daemon, `/entitlements/cus_${customers}`)
  return ((await answer.json()) as { cursor: string }).cursor
}

async function logAfter(daemon: RunningDaemon, cursor: string): Promise<readonly StreamedChange[]> {
  const page = await ask(daemon, `/changes?limit=100&cursor=${cursor}`)
  return ((await page.json()) as { items: readonly StreamedChange[] }).items
}

describe('GET /changes/stream', () => {
  const daemon = sharedDaemon()

  it('sends what GET /changes lists, without a hole or a double, however often a client comes back', async () => {
    const step = fc.oneof(
      fc.constant('reconnect' as const),
      fc.record({ pay: fc.integer({ min: 1, max: 6 }), waits: fc.boolean() }),
      fc.constant('sandbox' as const),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 15 }), async (steps) => {
        const start = await newest(daemon())
        let client = await openStream(daemon(), `?cursor=${start}`)
        const clients = [client]
        const paying: Promise<void>[] = []
        for (const one of steps) {
          if (one === 'reconnect') {
            client.leave()
            // The header counts, since a client connects again to the same URL.
            client = await openStream(daemon(), `?cursor=${start}`, { 'Last-Event-ID': client.lastEventId() })
            clients.push(client)
          } else if (one === 'sandbox') {
            paying.push(pay(daemon(), 1, 'sandbox'))
          } else {
            paying.push(pay(daemon(), one.pay))
            if (one.waits) await paying.at(-1)
          }
        }
        await Promise.all(paying)
        const listed = await logAfter(daemon(), start)
        const received = () => clients.flatMap(({ changes }) => changes)
        await eventually(() => expect(received().length).toBeGreaterThanOrEqual(listed.length))
        client.leave()
        expect(received()).toEqual(listed)
      }),
      { numRuns: 8 },
    )
  })

  it('begins now, and tells a new client where that is', async () => {
    await pay(daemon(), 2)
    const client = await openStream(daemon())
    expect(Object.fromEntries(client.head.headers)).toMatchObject({
      'content-type': 'text/event-stream',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
    })
    await eventually(() => expect(client.lastEventId()).not.toBe(''))
    client.leave()
    await pay(daemon(), 2)
    const next = await openStream(daemon(), '', { 'Last-Event-ID': client.lastEventId() })
    await eventually(() => expect(next.changes).toHaveLength(2))
    next.leave()
  })

  it('knows no cursor of another log', async () => {
    for (const [query, id] of [
      ['?cursor=', ''],
      ['?cursor=another.1', ''],
      ['', 'another.1'],
      [`?cursor=${await newest(daemon())}`, 'another.1'],
    ] as const) {
      const answer = await ask(daemon(), `/changes/stream${query}`, id === '' ? {} : { 'Last-Event-ID': id })
      expect([answer.status, await answer.json()]).toMatchObject([410, { code: 'cursor_reset' }])
    }
  })

  // What waits for a client is in the daemon's memory, whatever the store.
  it.runIf(ENGINE === 'sqlite')(
    'goes on for a client that reads slowly, and keeps no more than a page for it',
    async () => {
      const start = await newest(daemon())
      const connections: Socket[] = []
      const note = (message: unknown): void => {
        const { request, socket } = message as { request: IncomingMessage; socket: Socket }
        if (request.headers['last-event-id'] === start) connections.push(socket)
      }
      subscribe('http.server.request.start', note)
      const { port } = new URL(daemon().url)
      const slow = connect(Number(port), '127.0.0.1').pause()
      const headers = [`Host: localhost`, `Authorization: Bearer ${API_KEY}`, `Last-Event-ID: ${start}`]
      slow.write(`GET /changes/stream HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n`)
      await eventually(() => expect(connections[0]?.bytesWritten).toBeGreaterThan(0))
      unsubscribe('http.server.request.start', note)
      const connection = connections[0] as Socket

      const count = 16_000
      const state = { active: true, status: 'active', since: NOW, until: null } as const
      const db = await openStoreAt(daemon().databaseFile, { readOnly: false })
      await db.transaction().execute(async (trx) => {
        for (let from = 0; from < count; from += 1_000) {
          const changes = Array.from({ length: 1_000 }, (_, n) => ({
            ...({ at: NOW, environment: 'live', before: state, after: state } as const),
            customerId: `cus_slow_${from + n}_`.padEnd(250, 'x'),
            productId: 'pro_1'.padEnd(250, 'x'),
            cause: { kind: 'rebuild', eventId: null } as const,
          }))
          await appendChanges(trx, changes)
        }
      })
      await db.destroy()
      await pay(daemon())
      const fast = await openStream(daemon(), `?cursor=${start}`)
      await eventually(() => expect(fast.changes).toHaveLength(count + 1))
      fast.leave()
      expect(connection.writableNeedDrain).toBe(true)
      expect(connection.writableLength).toBeLessThan(200_000)

      let text = ''
      slow.setEncoding('latin1').on('data', (piece) => {
        text += piece
      })
      slow.resume()
      const last = fast.lastEventId()
      await eventually(() => expect(text.slice(-1_000)).toContain(`id: ${last}\n`))
      const ids = [...text.matchAll(/^id: (.*)$/gm)].map(([, id]) => id)
      expect(ids).toEqual([start, ...fast.changes.map(({ cursor }) => cursor)])
      slow.destroy()
    },
  )
})

describe('a stream', () => {
  const NEXT = keyEntry('app', 'lk_next')
  const ended = ({ ended: end }: StreamClient) => expect(end).resolves.toBeUndefined()

  it('ends when its key is removed or loses the environment, and the others go on', async () => {
    const daemon = await runDaemon({ config: { api: { keys: [keyEntry('old', API_KEY), NEXT] } } })
    const [old, other] = [
      await openStream(daemon),
      await openStream(daemon, '', { Authorization: 'Bearer lk_next' }),
    ]
    await daemon.readAgain({ api: { keys: [NEXT] } })
    await ended(old)
    await pay(daemon)
    await eventually(() => expect(other.changes).toHaveLength(1))
    await daemon.readAgain({ api: { keys: [{ ...NEXT, environments: ['sandbox'] }] } })
    await ended(other)
  })

  it('sends nothing once its key has expired', async () => {
    const expiresAt = new Date(NOW + 60_000).toISOString()
    const daemon = await runDaemon({
      config: { api: { keys: [{ ...keyEntry('app', API_KEY), expiresAt }] } },
    })
    const client = await openStream(daemon)
    daemon.setNow(NOW + 60_000)
    await pay(daemon)
    await ended(client)
    expect(client.changes).toEqual([])
  })

  it('ends in order when the daemon stops, and goes on after the restart', async () => {
    const daemon = await runDaemon()
    const client = await openStream(daemon)
    await pay(daemon, 3)
    await eventually(() => expect(client.changes).toHaveLength(3))
    const again = await daemon.restart()
    await ended(client)
    await pay(again, 2)
    const next = await openStream(again, '', { 'Last-Event-ID': client.lastEventId() })
    await eventually(() => expect(next.changes).toHaveLength(2))
    expect(next.changes).toEqual(await logAfter(again, client.lastEventId()))
    next.leave()
  })
})
