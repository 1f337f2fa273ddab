import { pino } from 'pino'
import { expect, it } from 'vitest'
import { catalogOf } from '../../src/entitlements/features.js'
import { LatchkeyError } from '../../src/errors.js'
import { createChangeStream } from '../../src/handlers/change-stream.js'
import type { ChangePageQuery, ListedChange } from '../../src/store/changes.js'
import { API_KEY } from '../daemon/running-daemon.js'
import { openStream } from '../daemon/stream-client.js'
import { eventually } from '../setup/eventually.js'
import { apiKey, bearer, FREE_PORT, NOW, openFront } from './daemon-front.js'

const NOTHING = { active: false, status: 'none', since: null, until: null } as const

/** A front with one change log for both environments, at most two streams, and all questions to the store counted. */
async function openLog(accessLog = false) {
  const log: ListedChange[] = []
  const errors: string[] = []
  const store = { isAway: false, unreadable: '', reads: 0, delay: Promise.resolve() }
  const read = () => {
    if (store.isAway) throw new LatchkeyError('store_unavailable', 'The store cannot be read.')
  }
  const deps = {
    catalog: () => catalogOf([]),
    async readChangePage({ environment, after, limit }: ChangePageQuery) {
      read()
      if (environment === store.unreadable) throw new Error('This page cannot be read.')
      store.reads += 1
      return log.slice(Number(after), Number(after) + limit)
    },
    async readCursor() {
      read()
      const newest = String(log.length)
      await store.delay
      return newest
    },
  }
  const logger = pino({}, { write: (line: string) => errors.push(line) })
  const changeStream = createChangeStream({ ...deps, log: logger }, 2)
  const addresses = { ...FREE_PORT, trustProxy: 0, accessLog, webhooks: null, metrics: null }
  const apiKeys = () => [apiKey(API_KEY, { environments: ['live', 'sandbox'] })]
  const { url, logged } = await openFront({ ...deps, changeStream, apiKeys, addresses })
  return {
    url,
    logged,
    errors,
    store,
    wake: changeStream.wake,
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
  const clients = [await openStream({ url }), await openStream({ url })]
  const refused = await fetch(`${url}/changes/stream`, { headers: bearer(API_KEY) })
  expect([refused.status, await refused.json()]).toMatchObject([503, { code: 'too_many_streams' }])
  clients[0]?.leave()
  const next = await eventually(() => openStream({ url }))
  for (const { leave } of [...clients, next]) leave()
})

it('has its line in the access log once it has ended', async () => {
  const { url, logged, append } = await openLog(true)
  const client = await openStream({ url })
  append(1)
  await eventually(() => expect(client.changes).toHaveLength(1))
  expect(logged).toEqual([])
  client.leave()
  await eventually(() => expect(logged).toMatchObject([{ route: '/changes/stream', status: 200 }]))
})
