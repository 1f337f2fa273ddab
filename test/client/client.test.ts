import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type Change, type ClientOptions, createClient } from '../../src/client/client.js'
import { eventually } from '../setup/eventually.js'
import {
  API_KEY,
  act,
  configuredFolder,
  keyEntry,
  MAY_ALL,
  rewriteConfig,
  SECRET,
  serveHere,
  takeIn,
} from '../world.js'
import { openLine } from './line.js'

const CONFIG = { ...MAY_ALL, products: { pro_1: { features: ['export'] } } }
const EXPORT = { feature: 'export' }
const YES = { active: true, until: null, stale: false, reason: null, unknown: false }
const NO = { ...YES, active: false }
const UNAVAILABLE = { ...NO, reason: 'unavailable' }
/** What the client asks while the daemon does not answer. */
const PROBE = '/entitlements/probe'

function clientOf(options: Partial<ClientOptions>) {
  const client = createClient({ url: undefined, apiKey: API_KEY, random: () => 0, ...options })
  onTestFinished(client.close)
  return client
}

/** A daemon, a line to it, and a client whose questions are counted. */
async function openAll(options: Partial<ClientOptions> = {}, config: object = CONFIG) {
  const folder = configuredFolder(config)
  const daemon = await serveHere(folder)
  const line = await openLine(daemon.url)
  const asked: string[] = []
  const client = clientOf({
    url: line.url,
    timeout: 2_000,
    fetch: (input, init) => {
      const { pathname } = new URL(String(input))
      if (pathname !== '/changes/stream' && pathname !== PROBE) asked.push(pathname)
      return fetch(input, init)
    },
    ...options,
  })
  const grant = (customerId: string) =>
    act(daemon, 'POST', `/customers/${customerId}/grants`, { productId: 'pro_1', reason: 'a test' })
  const revoke = (customerId: string) => act(daemon, 'DELETE', `/customers/${customerId}/grants/pro_1`, {})
  /** Asks until the answer comes from the cache. */
  const warm = (customerId: string) =>
    eventually(async () => {
      const before = asked.length
      expect(await client.check(customerId, EXPORT)).toMatchObject({ stale: false, reason: null })
      expect(asked).toHaveLength(before)
    })
  return { folder, daemon, line, client, asked, grant, revoke, warm }
}

/** What stands for a daemon: answers each request as told, and counts them, but for those that ask if it is back. */
async function openStandIn(answer: (res: ServerResponse, count: number, req: IncomingMessage) => void) {
  let count = 0
  const server = createServer((req, res) => {
    if (req.url?.startsWith(PROBE)) return give(res, 200, ANSWER)
    count += 1
    answer(res, count, req)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, count: () => count }
}

const ANSWER = {
  customerId: 'cus_1',
  environment: 'live',
  asOf: '2026-03-01T12:00:00.000Z',
  validUntil: null,
  cursor: 'log.7',
  entitlements: [],
  features: [{ id: 'export', active: true, until: null, productIds: ['pro_1'] }],
}
const give = (res: ServerResponse, status: number, body: object, headers = {}) => {
  const type = 'code' in body && { type: `urn:latchkey:problem:${body.code}` }
  res.writeHead(status, { 'Content-Type': 'application/json', ...headers })
  res.end(JSON.stringify({ ...body, ...type }))
}

/** A client with two answers kept, and a stream whose comments come when they are wanted. */
async function openProving(validUntil: string | null) {
  let now = 0
  const streams: ServerResponse[] = []
  const { url, count } = await openStandIn((res, _, { url: path = '' }) => {
    if (!path.includes('/stream')) return give(res, 200, { ...ANSWER, validUntil })
    res.writeHead(200, { 'Content-Type': 'text/event-stream' }).write('id: log.7\n\n: 0\n\n')
    streams.push(res)
  })
  const client = clientOf({ url, maxAge: 600_000, clock: { monotonic: () => now, wall: () => now } })
  const isAsked = async (customerId: string) => {
    const before = count()
    await client.check(customerId, EXPORT)
    return count() > before
  }
  await eventually(async () =>
    expect([await isAsked('cus_1'), await isAsked('cus_2')]).toEqual([false, false]),
  )
  return {
    isAsked,
    goTo(instant: number) {
      now = instant
    },
    /** Says that everything stored up to an instant was delivered; resolves when the client has read it. */
    async prove(afterMs: number) {
      const change = JSON.stringify({ ...ANSWER, customerId: 'cus_2', cursor: 'log.8' })
      streams[0]?.write(`: ${afterMs}\n\nid: log.8\nevent: change\ndata: ${change}\n\n`)
      await eventually(async () => expect(await isAsked('cus_2')).toBe(true))
    },
  }
}

describe('a client', () => {
  it('answers from its cache until a change of the customer comes on the stream', async () => {
    const { client, asked, grant, revoke, warm } = await openAll()
    await grant('cus_1')
    await warm('cus_1')
    await warm('cus_2')
    const before = asked.length
    expect(await client.check('cus_1', EXPORT)).toEqual(YES)
    expect(await client.check('cus_1', { productId: 'pro_1' })).toEqual(YES)
    for (let times = 0; times < 2; times += 1) {
      const access = await client.list('cus_1')
      expect(access).toMatchObject({ features: [{ id: 'export', active: true }], stale: false })
      // What a caller does with it changes nothing that is kept.
      access.features.pop()
    }
    expect(asked).toHaveLength(before)

    await revoke('cus_1')
    await eventually(async () =>
      expect(await client.check('cus_1', EXPORT)).toMatchObject({ active: false, reason: null }),
    )
    expect(await client.check('cus_2', EXPORT)).toEqual(NO)
    // The other customer's answer was kept.
    expect(asked.slice(before).filter((path) => path.endsWith('cus_2'))).toEqual([])
  })

  it('uses nothing that it kept while the stream is cut, and all that did not change once it is back', async () => {
    const { client, asked, line, grant, revoke, warm } = await openAll({
      onUnavailable: 'deny',
      timeout: 100,
    })
    await grant('cus_1')
    await grant('cus_2')
    await warm('cus_1')
    await warm('cus_2')
    line.cut()
    await eventually(async () => expect(await client.check('cus_1', EXPORT)).toEqual(UNAVAILABLE))
    await revoke('cus_1')
    line.mend()
    const before = asked.length
    await eventually(async () =>
      expect(await client.check('cus_1', EXPORT)).toMatchObject({ active: false, reason: null }),
    )
    await warm('cus_2')
    expect(await client.check('cus_2', EXPORT)).toEqual(YES)
    expect(asked.length).toBeGreaterThan(before)
  })

  it('asks the daemon for everything once it is closed', async () => {
    const { client, asked, warm } = await openAll()
    await warm('cus_1')
    client.close()
    const before = asked.length
    expect(await client.check('cus_1', EXPORT)).toEqual(NO)
    expect(asked).toHaveLength(before + 1)
  })

  it('uses nothing that it kept once the stream is silent, and asks again after the longest age', async () => {
    let now = 0
    const { client, asked, warm } = await openAll({ clock: { monotonic: () => now, wall: () => now } })
    await warm('cus_1')
    const isAsked = async () => {
      const before = asked.length
      await client.check('cus_1', EXPORT)
      return asked.length > before
    }
    now += 19_000
    expect(await isAsked()).toBe(false)
    now += 2_000
    expect(await isAsked()).toBe(true)
    for (let age = 0; age < 60_000; age += 15_000) {
      await warm('cus_1')
      now += 15_000
    }
    await warm('cus_1')
    expect(asked.length).toBeGreaterThan(3)
  })

  it('takes a proof of the stream that was held up for no newer than it is', async () => {
    const { isAsked, goTo, prove } = await openProving(null)
    goTo(19_000)
    await prove(1)
    expect(await isAsked('cus_1')).toBe(false)
    goTo(21_000)
    expect(await isAsked('cus_1')).toBe(true)
  })

  it('lets no answer outlive its end when both clocks stood still and the daemon counted on', async () => {
    const { isAsked, goTo, prove } = await openProving('2026-03-01T12:01:00.000Z')
    goTo(1_000)
    await prove(60_000)
    expect(await isAsked('cus_1')).toBe(true)
  })

  it('keeps nothing of a store that was replaced', async () => {
    const { client, asked, daemon, line, grant, warm } = await openAll()
    await grant('cus_1')
    await warm('cus_1')
    await daemon.stop()
    const other = await serveHere(configuredFolder(CONFIG))
    line.leadTo(other.url)
    await eventually(async () => expect(await client.check('cus_1', EXPORT)).toMatchObject({ active: false }))
    await warm('cus_1')
    expect(asked.length).toBeGreaterThan(2)
  })

  it('shares one request among questions about one customer', async () => {
    const { client, asked, grant } = await openAll()
    await grant('cus_1')
    const many = await Promise.all(Array.from({ length: 50 }, () => client.check('cus_1', EXPORT)))
    expect(many).toEqual(many.map(() => YES))
    expect(asked).toEqual(['/entitlements/cus_1'])
  })

  it('answers many at once, in order, with one request for what it does not know', async () => {
    const { client, asked, grant, warm } = await openAll()
    await grant('cus_1')
    await grant('cus_2')
    await warm('cus_1')
    const before = asked.length
    const pairs = ['cus_none', 'cus_1', 'cus_2'].map((customerId) => ({ customerId, ...EXPORT }))
    expect(await client.checkMany([...pairs, { customerId: 'cus_2', productId: 'pro_1' }])).toEqual([
      NO,
      YES,
      YES,
      YES,
    ])
    expect(asked.slice(before)).toEqual(['/entitlements/check'])
  })

  it('asks the daemon each time that it is asked by a reference', async () => {
    const { client, asked, warm } = await openAll()
    await warm('cus_1')
    const before = asked.length
    for (let times = 0; times < 2; times += 1)
      expect(await client.check({ externalRef: 'user-1' }, EXPORT)).toEqual(NO)
    expect(
      await client.checkMany([
        { externalRef: 'user-1', ...EXPORT },
        { customerId: 'cus_1', ...EXPORT },
      ]),
    ).toEqual([NO, NO])
    expect(asked.slice(before)).toEqual(Array.from({ length: 3 }, () => '/entitlements/check'))
  })

  it('says once that the daemon knows no such feature or product, and asks about each id once', async () => {
    const warnings: string[] = []
    const { client, asked, grant, warm } = await openAll({ onUnknown: (message) => warnings.push(message) })
    await grant('cus_1')
    await warm('cus_1')
    await warm('cus_2')
    const before = asked.length
    const UNKNOWN = { ...NO, unknown: true }
    const ids = [{ feature: 'exprot' }, { productId: 'pro_l' }]
    for (const needed of ids) {
      for (const customerId of ['cus_1', 'cus_2']) {
        expect(await client.check(customerId, needed)).toEqual(UNKNOWN)
        expect(await client.checkMany([{ customerId, ...needed }])).toEqual([UNKNOWN])
      }
    }
    expect(await client.check('cus_2', EXPORT)).toEqual(NO)
    expect(asked.slice(before)).toEqual(['/entitlements/check', '/entitlements/check'])
    expect(await client.checkMany([{ customerId: 'cus_3', feature: 'exprot' }])).toEqual([UNKNOWN])
    expect(warnings).toEqual([
      expect.stringMatching(/no feature "exprot".* products\.<id>\.features/),
      expect.stringMatching(/no product "pro_l"/),
    ])
  })

  it('throws for a refused key and a wrong question, whatever was declared, and says what to do', async () => {
    const { daemon } = await openAll()
    const refused = clientOf({ url: daemon.url, apiKey: 'lk_other', onUnavailable: 'deny' })
    await expect(refused.check('cus_1', EXPORT)).rejects.toMatchObject({
      code: 'unauthorized',
      status: 500,
      message: expect.stringMatching(/Check `apiKey`/),
    })
    const client = clientOf({ url: daemon.url, onUnavailable: 'stale' })
    const wrong = { code: 'invalid_request' }
    await expect(client.check('', EXPORT)).rejects.toMatchObject(wrong)
    await expect(client.check(7 as never, EXPORT)).rejects.toThrow(/of the type number/)
    for (const needed of [
      undefined,
      {},
      { feature: '' },
      { feature: 7 },
      { ...EXPORT, productId: 'pro_1' },
    ]) {
      await expect(client.check('cus_1', needed as never)).rejects.toMatchObject(wrong)
      const pair = { customerId: 'cus_1', ...needed } as never
      await expect(client.checkMany([pair])).rejects.toMatchObject(wrong)
    }
    await expect(client.checkMany({} as never)).rejects.toMatchObject(wrong)
    await expect(client.watch(undefined as never)).rejects.toMatchObject(wrong)
    for (const after of ['', ' ', 'log\u2028.1'])
      await expect(client.watch(() => {}, { after })).rejects.toMatchObject(wrong)
    const elsewhere = clientOf({ url: `${daemon.url}/elsewhere`, onUnavailable: 'deny' })
    await expect(elsewhere.check('cus_1', EXPORT)).rejects.toMatchObject({ code: 'route_not_found' })
    expect(() => createClient(undefined as never)).toThrow(/`url` must be/)
  })

  it.each([
    { environment: 'prod' },
    { onUnavailable: 'allow' },
    { maxCustomers: 'x' },
    { maxCustomers: -1 },
    { maxAge: Number.NaN },
    { maxAge: -1 },
    { retries: 1.5 },
    { fetch: 'node-fetch' },
  ])('takes no wrong option: %o', (option) => {
    const [[name, value] = []] = Object.entries(option)
    expect(() => clientOf({ url: 'http://127.0.0.1:4680', ...(option as object) })).toThrow(
      expect.objectContaining({
        code: 'invalid_options',
        message: expect.stringContaining(`\`${name}\` is ${value}; use`),
      }),
    )
  })

  it('names an option that there is not', () => {
    expect(() => clientOf({ url: 'http://127.0.0.1:4680', onUnavailble: 'deny' } as never)).toThrow(
      expect.objectContaining({
        code: 'invalid_options',
        message: expect.stringContaining('no option `onUnavailble`; use url, apiKey,'),
      }),
    )
  })

  it('refuses options that no question could be asked with', () => {
    const url = 'http://127.0.0.1:4680'
    for (const [option, message] of [
      ...['localhost', 'ftp://127.0.0.1', 'http://user:secret@127.0.0.1', `${url}/?x=1`].map(
        (one) => [{ url: one }, /`url` must be/] as const,
      ),
      ...['', 'lk_one\nlk_two', 'ключ'].map((apiKey) => [{ apiKey }, /`apiKey` is empty, or/] as const),
      ...[-1, 0, 1.5, Number.NaN, Infinity].map((timeout) => [{ timeout }, /`timeout` must be/] as const),
    ]) {
      expect(() => clientOf({ url, ...option })).toThrow(
        expect.objectContaining({ code: 'invalid_options', message: expect.stringMatching(message) }),
      )
    }
  })

  it('asks about any id that a customer can have', async () => {
    const { client, asked, grant } = await openAll({ maxCustomers: 0, onUnknown: () => {} })
    const long = '\u{E000}'.repeat(255)
    await grant(encodeURIComponent(long))
    const pairs = Array.from({ length: 1_000 }, () => ({ customerId: long, feature: long }))
    expect(await client.checkMany([...pairs, { customerId: long, ...EXPORT }])).toEqual([
      ...pairs.map(() => ({ ...NO, unknown: true })),
      YES,
    ])
    expect(asked).toHaveLength(3)
    expect(await client.checkMany([{ customerId: '..', ...EXPORT }])).toEqual([NO])
    for (const id of ['.', '..', '\ud800'])
      await expect(client.check(id, EXPORT)).rejects.toMatchObject({ code: 'invalid_request' })
  })
})

describe('an address that leads elsewhere', () => {
  it.each([
    ['a page', 200, '<html>'],
    ['other JSON', 200, '{"ok":true}'],
    ['a list', 200, '[]'],
    ['nothing', 204, ''],
    ['a redirect', 302, ''],
    ['a login that is not ours', 401, '{"code":"unauthorized"}'],
  ])('is no reason to say no, and no daemon that is away: %s', async (_, status, body) => {
    const { url, count } = await openStandIn((res) =>
      res.writeHead(status, { Location: '/login', 'Content-Type': 'text/html' }).end(body),
    )
    const client = clientOf({ url, onUnavailable: 'deny', maxCustomers: 0 })
    const failure = { code: 'unexpected_answer', message: expect.stringMatching(/Check `url`/) }
    await expect(client.check('cus_1', EXPORT)).rejects.toMatchObject(failure)
    await expect(client.checkMany([{ customerId: 'cus_1', ...EXPORT }])).rejects.toMatchObject(failure)
    await expect(client.watch(() => {})).rejects.toMatchObject(failure)
    expect(count()).toBe(3)
  })

  it('is not what an answer that breaks off shows', async () => {
    const { url } = await openStandIn((res) => {
      res.writeHead(200, { 'Content-Length': 1_000 }).write('{"customerId":')
      setImmediate(() => res.destroy())
    })
    const client = clientOf({ url, onUnavailable: 'deny', maxCustomers: 0 })
    expect(await client.check('cus_1', EXPORT)).toEqual(UNAVAILABLE)
  })
})

it('keeps to the environment of its first answer, whichever the daemon would choose after a reload', async () => {
  const sandbox = { environment: 'sandbox', secrets: [`${SECRET}_sandbox`] }
  const { client, daemon, folder, line, grant, warm } = await openAll(
    {},
    { ...CONFIG, endpoints: { sandbox } },
  )
  await grant('cus_1')
  await grant('cus_2')
  await warm('cus_1')
  const streams: Response[] = []
  const late = clientOf({
    url: line.url,
    fetch: async (...request) => {
      const answer = await fetch(...request)
      if (String(request[0]).includes('/stream')) streams.push(answer)
      return answer
    },
  })
  const seen: string[] = []
  void late.watch(({ customerId }) => seen.push(customerId))
  await eventually(() => expect(streams).toHaveLength(1))

  rewriteConfig(folder, { ...CONFIG, endpoints: { sandbox, ...CONFIG.endpoints } })
  await daemon.reload()
  expect([await client.check('cus_2', EXPORT), await late.check('cus_2', EXPORT)]).toEqual([YES, NO])
  await act(daemon, 'DELETE', '/customers/cus_1/grants/pro_1?environment=sandbox', {})
  await eventually(async () => expect(await client.check('cus_1', EXPORT)).toMatchObject({ active: false }))
  line.cut()
  line.mend()
  await warm('cus_2')
  await act(daemon, 'DELETE', '/customers/cus_2/grants/pro_1?environment=sandbox', {})
  await eventually(async () => expect(await client.check('cus_2', EXPORT)).toMatchObject({ active: false }))
  await act(daemon, 'POST', '/customers/cus_3/grants', { productId: 'pro_1', reason: 'a test' })
  await eventually(() => expect(seen).toEqual(['cus_3']))
})

it('throws for a refused key under every `onUnavailable`, however often it has been refused', async () => {
  const options = { onUnavailable: 'stale', random: () => 0.5 } as const
  const { client, daemon, folder, grant, warm } = await openAll(options)
  await grant('cus_1')
  await warm('cus_1')
  rewriteConfig(folder, { ...CONFIG, api: { keys: [keyEntry('app', 'lk_other')] } })
  await daemon.reload()
  const codes = new Set<string>()
  await eventually(async () => {
    await client.check('cus_1', EXPORT).then(
      ({ stale }) => stale && codes.add('stale'),
      ({ code }) => codes.add(code),
    )
    expect([...codes]).toEqual(['unauthorized', 'too_many_wrong_keys'])
  })
  const denying = clientOf({ url: daemon.url, onUnavailable: 'deny' })
  await expect(denying.check('cus_1', EXPORT)).rejects.toMatchObject({ code: 'too_many_wrong_keys' })
})

describe('a daemon that does not answer', () => {
  it('is asked again after a network error, 429 and 5xx, and as late as it says', async () => {
    const { url, count } = await openStandIn((res, at) => {
      if (at === 1) res.destroy()
      else if (at === 2) give(res, 429, { code: 'rate_limited' }, { 'Retry-After': '0' })
      else if (at === 3) give(res, 503, { code: 'store_unavailable' })
      else give(res, 200, ANSWER)
    })
    expect(await clientOf({ url, retries: 3, maxCustomers: 0 }).check('cus_1', EXPORT)).toEqual(YES)
    expect(count()).toBe(4)
  })

  it('is not asked again where it would answer too late, or not better', async () => {
    const late = await openStandIn((res) =>
      give(res, 503, { code: 'store_unavailable', detail: 'Locked.' }, { 'Retry-After': '60' }),
    )
    await expect(clientOf({ url: late.url, maxCustomers: 0 }).check('cus_1', EXPORT)).rejects.toMatchObject({
      code: 'unavailable',
      status: 503,
      retryAfterMs: 60_000,
      message: 'GET /entitlements/cus_1 was answered 503 store_unavailable. Locked.',
    })
    expect(late.count()).toBe(1)
    const wrong = await openStandIn((res) => give(res, 400, { code: 'invalid_request' }))
    await expect(clientOf({ url: wrong.url, maxCustomers: 0 }).check('cus_1', EXPORT)).rejects.toMatchObject({
      code: 'invalid_request',
    })
    expect(wrong.count()).toBe(1)
  })

  it('costs no more than the timeout', async () => {
    const silent = await openStandIn(() => {})
    const client = clientOf({ url: silent.url, timeout: 50, retries: 5, maxCustomers: 0 })
    await expect(client.check('cus_1', EXPORT)).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('did not answer within 50 ms'),
    })
    // Not even that, if the machine is busy.
    expect(silent.count()).toBeLessThanOrEqual(1)
  })

  it('is told apart from no access: by an error, a reason, or the last answer', async () => {
    for (const [onUnavailable, answer] of [
      ['deny', UNAVAILABLE],
      ['stale', { ...YES, stale: true }],
    ] as const) {
      const { client, line, grant, warm } = await openAll({ onUnavailable, timeout: 200, retries: 0 })
      await grant('cus_1')
      await warm('cus_1')
      line.cut()
      await eventually(async () => expect(await client.check('cus_1', EXPORT)).toEqual(answer))
      expect(await client.checkMany([{ customerId: 'cus_1', ...EXPORT }])).toEqual([answer])
      expect(await client.check('cus_other', EXPORT)).toEqual(UNAVAILABLE)
      const { stale, reason } = answer
      expect(await client.list('cus_1')).toMatchObject({ customerId: 'cus_1', stale, reason })
    }
  })

  it('never gives a stale answer beyond the end of access', async () => {
    let now = 0
    const validUntil = '2026-03-01T12:00:10.000Z'
    let isAway = false
    const { url } = await openStandIn((res) =>
      isAway ? give(res, 500, {}) : give(res, 200, { ...ANSWER, validUntil }),
    )
    // The wall clock is behind, and set back further.
    const clock = { monotonic: () => now, wall: () => -now }
    const client = clientOf({ url, onUnavailable: 'stale', retries: 0, clock })
    await client.check('cus_1', EXPORT)
    isAway = true
    now = 9_999
    expect(await client.check('cus_1', EXPORT)).toEqual({ ...YES, stale: true })
    now = 10_000
    expect(await client.check('cus_1', EXPORT)).toEqual(UNAVAILABLE)
  })

  it('has a last answer about as many customers as are kept, however often one is asked about', async () => {
    let isAway = false
    const { url } = await openStandIn((res) => (isAway ? give(res, 500, {}) : give(res, 200, ANSWER)))
    const client = clientOf({ url, onUnavailable: 'stale', retries: 0, maxCustomers: 4 })
    for (const number of [1, 2, 3, 4, 4]) await client.check(`cus_${number}`, EXPORT)
    isAway = true
    expect(await client.check('cus_1', EXPORT)).toEqual({ ...YES, stale: true })
  })
})

describe('watch', () => {
  it('hands over each change once and in order, across cuts and a restart', async () => {
    const { client, daemon, folder, line, grant, revoke } = await openAll()
    await grant('cus_1')
    const { cursor } = await client.list('cus_1')
    const seen: string[] = []
    const ends = new AbortController()
    const watching = client.watch(
      async ({ customerId, after }: Change) => {
        await Promise.resolve()
        seen.push(`${customerId} ${after.active}`)
      },
      { after: cursor, signal: ends.signal },
    )
    const expected: string[] = []
    const change = async (customerId: string) => {
      await grant(encodeURIComponent(customerId))
      await revoke(encodeURIComponent(customerId))
      expected.push(`${customerId} true`, `${customerId} false`)
    }
    // Line separators, which JSON leaves as they are.
    await change('cus_2\u2028\u2029')
    await eventually(() => expect(seen).toEqual(expected))
    line.cut()
    await change('cus_3')
    line.mend()
    await change('cus_4')
    await eventually(() => expect(seen).toEqual(expected))
    await daemon.stop()
    await takeIn(folder, [])
    const again = await serveHere(folder)
    line.leadTo(again.url)
    await act(again, 'POST', '/customers/cus_5/grants', { productId: 'pro_1', reason: 'a test' })
    await eventually(() => expect(seen).toEqual([...expected, 'cus_5 true']))
    ends.abort()
    await watching
  })

  it('ends with what the handler throws, and with a cursor of another store', async () => {
    const { client, grant } = await openAll()
    await grant('cus_1')
    await expect(client.watch(() => {}, { after: 'other.1' })).rejects.toMatchObject({ code: 'cursor_reset' })
    const { cursor } = await new Promise<Change>((resolve) => {
      void client.watch(resolve)
      void grant('cus_2').then(() => grant('cus_3'))
    })
    const handler = () => Promise.reject(new Error('the handler broke'))
    const broken = expect(client.watch(handler, { after: cursor })).rejects.toThrow('the handler broke')
    await grant('cus_4')
    await broken
  })
})
