import { describe, expect, it, onTestFinished } from 'vitest'
import { type ClientOptions, createClient } from '../../src/client/client.js'
import { eventually } from '../setup/eventually.js'
import { freePort } from '../setup/free-port.js'
import {
  API_KEY,
  act,
  configuredFolder,
  MAY_ALL,
  ROOT,
  runProgram,
  serve,
  temporaryFolder,
} from '../world.js'

const EXPORT = { feature: 'export' }
const YES = { active: true, until: null, stale: false, reason: null, unknown: false }
const UNAVAILABLE = { ...YES, active: false, reason: 'unavailable' }
const PROBE = '/entitlements/probe'

const ANSWER = {
  customerId: 'cus_1',
  environment: 'live',
  asOf: '2026-03-01T12:00:00.000Z',
  validUntil: null,
  cursor: 'log.7',
  entitlements: [],
  features: [{ id: 'export', active: true, until: null, productIds: ['pro_1'] }],
}

/** A client whose requests are answered as told: nothing takes time, unless the answer does. */
function clientOf(
  answer: (path: string) => Response | Promise<Response>,
  options: Partial<ClientOptions> = {},
) {
  const asked: string[] = []
  const client = createClient({
    url: 'http://127.0.0.1:4680',
    apiKey: API_KEY,
    retries: 0,
    fetch: async (input, init) => {
      const { pathname } = new URL(String(input))
      if (pathname === '/changes/stream') return new Promise<Response>(() => {})
      asked.push(pathname)
      const never = new Promise<Response>((_, reject) =>
        init?.signal?.addEventListener('abort', () => reject(init.signal?.reason)),
      )
      return Promise.race([answer(pathname), never])
    },
    ...options,
  })
  onTestFinished(client.close)
  return { client, asked, questions: () => asked.filter((path) => path !== PROBE) }
}

const away = () => Promise.reject(new TypeError('fetch failed'))
const hangs = () => new Promise<Response>(() => {})

describe('a question after one that was not answered', () => {
  it.each(['throw', 'deny', 'stale'] as const)(
    'is answered at once under %s, without a request, until a probe is answered',
    async (onUnavailable) => {
      let answer: (path: string) => Response | Promise<Response> = () => Response.json(ANSWER)
      const { client, asked, questions } = clientOf((path) => answer(path), { onUnavailable })
      expect(await client.check('cus_1', EXPORT)).toEqual(YES)

      const probe = Promise.withResolvers<Response>()
      answer = (path) => (path === PROBE ? probe.promise : away())
      const expectUnavailable = async () => {
        const check = client.check('cus_1', EXPORT)
        if (onUnavailable === 'throw') await expect(check).rejects.toMatchObject({ code: 'unavailable' })
        else expect(await check).toEqual(onUnavailable === 'deny' ? UNAVAILABLE : { ...YES, stale: true })
      }
      for (let times = 0; times < 100; times += 1) await expectUnavailable()
      expect(asked).toEqual(['/entitlements/cus_1', '/entitlements/cus_1', PROBE])

      answer = () => Response.json(ANSWER)
      probe.resolve(Response.json(ANSWER))
      await eventually(async () => expect(await client.check('cus_1', EXPORT).catch(() => null)).toEqual(YES))
      expect(questions()).toHaveLength(3)
    },
  )

  it('waits for the probe that shows that only the other question failed', async () => {
    // Read without a turn of the event loop, and by a clock that stands: a busy machine makes no difference.
    const answered = () => Object.assign(Response.json(ANSWER), { text: async () => JSON.stringify(ANSWER) })
    const { client } = clientOf(
      (path) => (path.endsWith('cus_bad') ? Response.json({}, { status: 500 }) : answered()),
      { onUnavailable: 'deny', clock: { monotonic: () => 0, wall: () => 0 } },
    )
    for (let times = 0; times < 20; times += 1) {
      expect(await client.check('cus_bad', EXPORT)).toEqual(UNAVAILABLE)
      expect(await client.check('cus_1', EXPORT)).toEqual(YES)
    }
  })

  it('shows what a refused key is answered, as soon as a probe is refused', async () => {
    let isAway = true
    const problem = { type: 'urn:latchkey:problem:unauthorized', code: 'unauthorized' }
    const { client } = clientOf(() => (isAway ? away() : Response.json(problem, { status: 401 })), {
      onUnavailable: 'deny',
    })
    expect(await client.check('cus_1', EXPORT)).toEqual(UNAVAILABLE)
    isAway = false
    await eventually(() =>
      expect(client.check('cus_1', EXPORT)).rejects.toMatchObject({ code: 'unauthorized' }),
    )
  })

  it('is asked as ever if nothing has been found out for a while, as where an app sleeps between requests', async () => {
    let now = 0
    let answer: () => Response | Promise<Response> = away
    const clock = { monotonic: () => now, wall: () => now }
    const options = { onUnavailable: 'deny', clock, timeout: 600_000 } as const
    const { client, questions } = clientOf((path) => (path === PROBE ? hangs() : answer()), options)
    for (let times = 0; times < 2; times += 1)
      expect(await client.check('cus_1', EXPORT)).toEqual(UNAVAILABLE)
    expect(questions()).toHaveLength(1)
    now += 603_000
    answer = () => Response.json(ANSWER)
    for (let times = 0; times < 2; times += 1) expect(await client.check('cus_1', EXPORT)).toEqual(YES)
    expect(questions()).toHaveLength(3)
  })

  it('goes to the daemon once the client is closed', async () => {
    const { client, asked } = clientOf(away, { onUnavailable: 'deny', random: () => 0.999 })
    for (let times = 0; times < 2; times += 1) await client.check('cus_1', EXPORT)
    client.close()
    const before = asked.length
    for (let times = 0; times < 3; times += 1) await client.check('cus_1', EXPORT)
    expect(asked.slice(before)).toEqual(['/entitlements/cus_1', '/entitlements/cus_1', '/entitlements/cus_1'])
  })
})

it('a daemon that hangs costs one timeout, and the first answers after it are right', async () => {
  const config = { ...MAY_ALL, server: { port: 0 }, products: { pro_1: { features: ['export'] } } }
  const daemon = await serve(configuredFolder(config))
  await act(daemon, 'POST', '/customers/cus_1/grants', { productId: 'pro_1', reason: 'a test' })
  let skipped = 0
  let questions = 0
  const client = createClient({
    url: daemon.url,
    apiKey: API_KEY,
    onUnavailable: 'stale',
    timeout: 1_000,
    clock: { monotonic: () => performance.now() + skipped, wall: () => Date.now() + skipped },
    fetch: (input, init) => {
      if (/\/entitlements\/cus/.test(String(input))) questions += 1
      return fetch(input, init)
    },
  })
  onTestFinished(client.close)
  await eventually(async () => {
    const before = questions
    expect(await client.check('cus_1', EXPORT)).toEqual(YES)
    expect(questions).toBe(before)
  })

  daemon.signal('SIGSTOP')
  // Until now, the stream has proved that nothing changed.
  skipped += 21_000
  const before = questions
  for (let times = 0; times < 1_000; times += 1)
    expect(await client.check('cus_1', EXPORT)).toEqual({ ...YES, stale: true })
  expect(questions - before).toBeLessThan(10)

  daemon.signal('SIGCONT')
  await eventually(async () => expect(await client.check('cus_1', EXPORT)).toEqual(YES))
  await act(daemon, 'DELETE', '/customers/cus_1/grants/pro_1', {})
  await eventually(async () =>
    expect(await client.check('cus_1', EXPORT)).toMatchObject({ active: false, stale: false, reason: null }),
  )
})

it('a process without a stream ends by itself while the daemon is away', async () => {
  const script = `
    import { createClient } from '${ROOT}/dist/src/client/client.js'
    const url = 'http://127.0.0.1:${await freePort()}'
    const client = createClient({ url, apiKey: 'lk_1', onUnavailable: 'deny', maxCustomers: 0 })
    console.log((await client.check('cus_1', { feature: 'export' })).reason)`
  const command = [process.execPath, '--input-type=module', '--eval', script]
  const exit = await runProgram(command, { folder: temporaryFolder() })
  expect(exit).toEqual({ code: 0, stdout: 'unavailable\n', stderr: '' })
})
