import { pino } from 'pino'
import { describe, expect, it } from 'vitest'
import { catalogOf } from '../../src/entitlements/features.js'
import { LatchkeyError } from '../../src/errors.js'
import { createChangeStream } from '../../src/handlers/change-stream.js'
import type { ActRequest } from '../../src/people/acts.js'
import type { ChangePageQuery, ListedChange } from '../../src/store/changes.js'
import { API_KEY } from '../daemon/running-daemon.js'
import { openStream } from '../daemon/stream-client.js'
import { eventually } from '../setup/eventually.js'
import { answerTo, apiKey, bearer, FREE_PORT, NOW, openFront } from './daemon-front.js'
import { exchange, head, openConnection } from './raw-connection.js'

const NOTHING = { active: false, status: 'none', since: null, until: null } as const

const OTHER = { Authorization: 'Bearer other' }

/** Three streams, the last for keys that have none. */
const LIMITS = { streams: 3, kept: 1, few: 1 }

/** A front with one change log for both environments, few streams, and all questions to the store counted. */
async function openLog(accessLog = false) {
  const log: ListedChange[] = []
  const errors: string[] = []
  const store = { isAway: false, isBehind: false, unreadable: '', reads: 0, delay: Promise.resolve() }
  const read = () => {
    if (store.isAway) throw new LatchkeyError('store_unavailable', 'The store cannot be read.')
  }
  const deps = {
    catalog: () => catalogOf([]),
    async readChangePage({ environment, after, upTo, limit }: ChangePageQuery) {
      read()
      if (environment === store.unreadable) throw new Error('This page cannot be read.')
      store.reads += 1
      return log
        .slice(0, upTo === undefined ? undefined : Number(upTo))
        .slice(Number(after))
        .slice(0, limit)
    },
    async readEnd() {
      read()
      const end = { cursor: String(log.length), isBehind: store.isBehind }
      await store.delay
      return end
    },
  }
  const logger = pino({}, { write: (line: string) => errors.push(line) })
  const changeStream = createChangeStream({ ...deps, log: logger }, LIMITS)
  const addresses = { ...FREE_PORT, trustProxy: 0, accessLog, webhooks: null, metrics: null }
  const rights = { scopes: ['read', 'write'], environments: ['live', 'sandbox'] } as const
  const apiKeys = () => [apiKey(API_KEY, rights), apiKey('other', rights), apiKey('third', rights)]
  const acts: string[] = []
  const performAct = async ({ environment, customerId }: ActRequest) => {
    acts.push(customerId)
    return { eventId: 'man_1', access: answerTo({ environment, customerId, at: null }) }
  }
  const { url, logged } = await openFront({ ...deps, changeStream, apiKeys, addresses, performAct })
  return {
    url,
    logged,
    errors,
    store,
    acts,
    wake: changeStream.wake,
    stop: changeStream.stop,
    append(count: number) {
      for (let n = 0; n < count; n += 1) {
        const change = { at: NOW, environment: 'live', before: NOTHING, after: NOTHING } as const
        const whose = { customerId: 'cus_1', productId: 'pro_1', cursor: String(log.length + 1) }
        log.push({ ...change, ...whose, cause: { kind: 'clock', eventId: null } })
      }
      changeStream.wake()
    },
  }
}

it('is read once for all clients that are at the same place', async () => {
  const { url, store, append } = await openLog()
  const clients = [await openStream({ url }), await openStream({ url })]
  append(3)
  await eventually(() => expect(clients.map(({ changes }) => changes.length)).toEqual([3, 3]))
  expect(store.reads).toBe(1)
  for (const { leave } of clients) leave()
})

it('says that it is complete once it has sent everything that was stored', async () => {
  const { url, append } = await openLog()
  append(250)
  const client = await openStream({ url }, '?cursor=0')
  await eventually(() => expect(client.comments).toEqual([250]))
  append(1)
  await eventually(() => expect(client.changes).toHaveLength(251))
  expect(client.comments).toEqual([250])
  client.leave()
})

it('does not say so while more is stored that nobody may see yet', async () => {
  const { url, store, append, wake } = await openLog()
  store.isBehind = true
  append(1)
  const client = await openStream({ url }, '?cursor=0')
  await eventually(() => expect(client.changes).toHaveLength(1))
  append(1)
  await eventually(() => expect(client.changes).toHaveLength(2))
  expect(client.comments).toEqual([])
  store.isBehind = false
  wake()
  await eventually(() => expect(client.comments).toEqual([2]))
  client.leave()
})

it('sends nothing twice to a client that comes with a newer cursor than the one just read', async () => {
  const { url, store, append } = await openLog()
  const first = await openStream({ url })
  const held = Promise.withResolvers<void>()
  store.delay = held.promise
  append(0)
  append(1)
  const client = await openStream({ url }, '?cursor=1')
  held.resolve()
  await eventually(() => expect(client.comments).toHaveLength(1))
  append(1)
  await eventually(() => expect(client.changes).not.toEqual([]))
  expect(client.changes).toMatchObject([{ cursor: '2' }])
  for (const { leave } of [first, client]) leave()
})

it('goes on by itself once the store is back', async () => {
  const { url, store, append, wake } = await openLog()
  const client = await openStream({ url })
  store.isAway = true
  append(1)
  const refused = await fetch(`${url}/changes/stream`, { headers: bearer(API_KEY) })
  expect([refused.status, await refused.json()]).toMatchObject([503, { code: 'store_unavailable' }])
  store.isAway = false
  wake()
  await eventually(() => expect(client.changes).toHaveLength(1))
  client.leave()
})

it('ends where a page cannot be read, and goes on for the clients at other places', async () => {
  const { url, errors, store, append } = await openLog()
  const [broken, other] = [await openStream({ url }), await openStream({ url }, '?environment=sandbox')]
  store.unreadable = 'live'
  append(1)
  await broken.ended
  await eventually(() => expect(other.changes).toHaveLength(1))
  expect(errors).toEqual([expect.stringContaining('This page cannot be read.')])
  other.leave()
})

it('is refused beyond the bound, until another client has left', async () => {
  const { url } = await openLog()
  const others = await openStream({ url }, '', OTHER)
  const clients = [
    await openStream({ url }),
    others,
    await openStream({ url }, '', { Authorization: 'Bearer third' }),
  ]
  expect(await refusal(url, 'third')).toMatchObject([503, { code: 'too_many_streams' }])
  clients[0]?.leave()
  const next = await eventually(() => openStream({ url }))
  for (const { leave } of [...clients, next]) leave()
})

it('is kept from no key by another one, and few of its refusals are logged', async () => {
  const { url, logged, errors } = await openLog()
  const clients = [await openStream({ url }), await openStream({ url })]
  for (let count = 0; count < 5; count += 1)
    expect(await refusal(url, API_KEY)).toMatchObject([503, { code: 'too_many_streams' }])
  clients.push(await openStream({ url }, '', OTHER))
  expect(await refusal(url, 'other')).toMatchObject([503, { code: 'too_many_streams' }])
  expect([...errors.map((line) => JSON.parse(line)), ...logged]).toMatchObject([
    { msg: expect.stringContaining('refused a stream'), keyName: API_KEY },
    { msg: expect.stringContaining('refused a stream'), keyName: 'other' },
  ])
  for (const { leave } of clients) leave()
})

it('is counted from its request on, however many come at once', async () => {
  const { url, store } = await openLog()
  const held = Promise.withResolvers<void>()
  store.delay = held.promise
  const answers = Array.from({ length: 10 }, () =>
    fetch(`${url}/changes/stream`, { headers: bearer(API_KEY) }),
  )
  await Promise.any(answers)
  held.resolve()
  const statuses = (await Promise.all(answers)).map(({ status }) => status)
  expect(statuses.filter((status) => status === 200)).toHaveLength(2)
  for (const answer of answers) await (await answer).body?.cancel()
})

describe.each([false, true])('with its access log: %s,', (accessLog) => {
  const act = (customerId: string) =>
    `${head(`PUT /customers/${customerId}/blocks`, { ...bearer(API_KEY), 'content-type': 'application/json', 'content-length': '17' })}{"reason":"none"}`

  it.each([
    ['alone', ''],
    ['behind another request', act('cus_before')],
  ])(
    'is the last answer on its connection, %s: what comes behind it has no effect',
    async (_name, before) => {
      const { url, acts, append, stop } = await openLog(accessLog)
      const connection = await openConnection(url)
      connection.send(before + head('GET /changes/stream', bearer(API_KEY)) + act('cus_behind'))
      await connection.until('retry: ')
      connection.send(act('cus_later'))
      append(1)
      await connection.until('event: change')
      expect((await fetch(`${url}/healthz`)).status).toBe(200)
      await stop()
      const received = await connection.closed
      expect(received.match(/HTTP\/1\.1 /g)).toHaveLength(before === '' ? 1 : 2)
      expect(acts).toEqual(before === '' ? [] : ['cus_before'])
    },
  )

  it('closes the connection also where it is refused', async () => {
    const { url, acts } = await openLog(accessLog)
    const received = await exchange(url, head('GET /changes/stream', bearer('wrong')) + act('cus_behind'))
    expect(received).toMatch(/^HTTP\/1\.1 401 /)
    expect(received.match(/HTTP\/1\.1 /g)).toHaveLength(1)
    expect(acts).toEqual([])
  })
})

async function refusal(url: string, key: string): Promise<[number, unknown]> {
  const answer = await fetch(`${url}/changes/stream`, { headers: bearer(key) })
  return [answer.status, await answer.json()]
}

it('has its line in the access log once it has ended', async () => {
  const { url, logged, append } = await openLog(true)
  const client = await openStream({ url })
  append(1)
  await eventually(() => expect(client.changes).toHaveLength(1))
  expect(logged).toEqual([])
  client.leave()
  await eventually(() => expect(logged).toMatchObject([{ route: '/changes/stream', status: 200 }]))
})
