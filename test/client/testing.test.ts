import { expect, it, onTestFinished, vi } from 'vitest'
import { type Change, type Client, createClient } from '../../src/client/client.js'
import { createTestClient, type TestClientOptions } from '../../src/client/testing.js'
import { deliveryOf } from '../ingest/wire.js'
import { eventually } from '../setup/eventually.js'
import { sentEvent } from '../stories.js'
import { API_KEY, act, configuredFolder, MAY_ALL, serveHere, takeIn } from '../world.js'

const NOON = Date.UTC(2026, 2, 1, 12)
const PRODUCTS = { pro_1: { features: ['export', 'api'] }, pro_2: { features: ['export'] } }
const EXPORT = { feature: 'export' }

/** What an app sees, but for the names that a store makes. */
const seen = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value, (name, one) =>
      name === 'cursor' || name === 'eventId' || name === 'environment' ? typeof one : one,
    ),
  )

const ANSWER_TO = {
  check: (client: Client) => client.check('cus_1', EXPORT),
  ofProduct: (client: Client) => client.check('cus_1', { productId: 'pro_2' }),
  ofNobody: (client: Client) => client.check('cus_nobody', EXPORT),
  unknownFeature: (client: Client) => client.check('cus_1', { feature: 'exprot' }),
  unknownProduct: (client: Client) => client.check('cus_1', { productId: 'pro_l' }),
  list: (client: Client) => client.list('cus_1'),
  listOfNobody: (client: Client) => client.list('cus_nobody'),
  many: (client: Client) =>
    client.checkMany([
      { customerId: 'cus_1', feature: 'api' },
      { customerId: '..', ...EXPORT },
    ]),
  byReference: (client: Client) => client.check({ externalRef: 'user-1' }, EXPORT),
  byReferenceOfNobody: (client: Client) => client.check({ externalRef: 'user-9' }, EXPORT),
  unknownByReference: (client: Client) => client.check({ externalRef: 'user-1' }, { productId: 'pro_l' }),
  manyByReference: (client: Client) =>
    client.checkMany([
      { externalRef: 'user-1', productId: 'pro_2' },
      { customerId: 'cus_1', ...EXPORT },
      { externalRef: 'user-9', ...EXPORT },
    ]),
  emptyReference: (client: Client) => client.check({ externalRef: '' }, EXPORT),
  noReference: (client: Client) => client.check({} as never, EXPORT),
  idAndReference: (client: Client) =>
    client.checkMany([{ customerId: 'cus_1', externalRef: 'user-1', ...EXPORT } as never]),
  emptyId: (client: Client) => client.check('', EXPORT),
  dots: (client: Client) => client.list('..'),
  nothingNeeded: (client: Client) => client.check('cus_1', {} as never),
  noArray: (client: Client) => client.checkMany({} as never),
  noHandler: (client: Client) => client.watch(undefined as never),
  otherCursor: (client: Client) => client.watch(() => {}, { after: 'other.1' }),
} as const

async function answersOf(client: Client): Promise<Record<string, unknown>> {
  const answers: Record<string, unknown> = {}
  for (const [name, ask] of Object.entries(ANSWER_TO))
    answers[name] = await ask(client).then(seen, ({ name, code, status }) => ({ name, code, status }))
  return answers
}

it('a test client answers every question as the client does of a daemon with the same grants', async () => {
  let time = NOON
  const folder = configuredFolder({ ...MAY_ALL, products: PRODUCTS })
  const data = {
    object: 'payment',
    id: 'pay_1',
    customer: { id: 'cus_1' },
    external_ref: 'user-1',
    method: 'CARD',
  }
  await takeIn(folder, [deliveryOf(sentEvent('evt_1', 'payment.failed', NOON, data).body)], () => time)
  const daemon = await serveHere(folder, { now: () => time })
  const told: string[][] = [[], []]
  const real = createClient({
    url: daemon.url,
    apiKey: API_KEY,
    maxCustomers: 0,
    onUnknown: (message) => told[0]?.push(message),
  })
  const fake = createTestClient({
    products: PRODUCTS,
    references: { 'user-1': 'cus_1' },
    now: () => time,
    onUnknown: (message) => told[1]?.push(message),
  })
  onTestFinished(real.close)
  const changes: Change[][] = [[], []]
  const { cursor } = await real.list('cus_1')
  void real.watch((change) => changes[0]?.push(change), { after: cursor })
  void fake.watch((change) => changes[1]?.push(change))

  const path = '/customers/cus_1/grants'
  const grant = async (productId: string, until: string | null = null) => {
    await act(daemon, 'POST', path, { productId, until, reason: 'a test' })
    fake.grant('cus_1', productId, { until })
  }
  const steps = [
    async () => {},
    () => grant('pro_1', new Date(NOON + 3_600_000).toISOString()),
    () => grant('pro_1', new Date(NOON + 7_200_000).toISOString()),
    () => grant('pro_2'),
    () => grant('pro_else'),
    async () => {
      await act(daemon, 'DELETE', `${path}/pro_2`, {})
      fake.revoke('cus_1', 'pro_2')
    },
    () => grant('pro_2', new Date(NOON + 1_800_000).toISOString()),
    async () => {
      await act(daemon, 'DELETE', `${path}/pro_1`, {})
      fake.revoke('cus_1', 'pro_1')
    },
  ]
  for (const step of steps) {
    time += 1_000
    await step()
    expect(await answersOf(fake)).toEqual(await answersOf(real))
  }
  await eventually(() => expect(changes[0]).toHaveLength(7))
  expect(seen(changes[1])).toEqual(seen(changes[0]))
  // An end that comes by itself.
  time = NOON + 1_800_000
  expect(await answersOf(fake)).toEqual(await answersOf(real))
  expect(told[1]).toEqual(told[0])
})

const grantedOf = (options: TestClientOptions = {}) => {
  const client = createTestClient({ products: PRODUCTS, ...options })
  client.grant('cus_1', 'pro_1')
  return client
}
const YES = { active: true, until: null, stale: false, reason: null, unknown: false }
const UNAVAILABLE = { ...YES, active: false, reason: 'unavailable' }

it.each([
  ['throw', null],
  ['deny', UNAVAILABLE],
  ['stale', { ...YES, stale: true }],
] as const)(
  'a test client that is not available answers as %s declares, and is right when it is back',
  async (onUnavailable, answer) => {
    const client = grantedOf({ onUnavailable, references: { 'user-1': 'cus_1' } })
    client.setAvailable(false)
    const unavailable = { name: 'LatchkeyError', code: 'unavailable', status: 503 }
    if (answer === null) {
      for (const ask of [ANSWER_TO.check, ANSWER_TO.list, ANSWER_TO.many])
        await expect(ask(client)).rejects.toMatchObject(unavailable)
    } else {
      expect(await client.check('cus_1', EXPORT)).toEqual(answer)
      const { stale, reason } = answer
      expect(await client.list('cus_1')).toMatchObject({ stale, reason })
      expect(await client.check('cus_never_seen', EXPORT)).toEqual(UNAVAILABLE)
      expect(await client.check({ externalRef: 'user-1' }, EXPORT)).toEqual(UNAVAILABLE)
      client.revoke('cus_1', 'pro_1')
      expect(await client.check('cus_1', EXPORT)).toEqual(answer)
      client.grant('cus_1', 'pro_1')
    }
    client.setAvailable(true)
    expect(await client.check('cus_1', EXPORT)).toEqual(YES)
  },
)

it('a test client hands over changes in order, from a cursor on, and none while it is not available', async () => {
  const client = grantedOf()
  const { cursor } = await client.list('cus_1')
  const ends = new AbortController()
  const seenByOne: string[] = []
  const watching = client.watch(({ customerId, after }) => seenByOne.push(`${customerId} ${after.active}`), {
    after: cursor,
    signal: ends.signal,
  })
  client.setAvailable(false)
  client.grant('cus_2', 'pro_1')
  client.revoke('cus_1', 'pro_1')
  await Promise.resolve()
  expect(seenByOne).toEqual([])
  client.setAvailable(true)
  await eventually(() => expect(seenByOne).toEqual(['cus_2 true', 'cus_1 false']))
  ends.abort()
  await watching
  const all: string[] = []
  const closed = client.watch(({ cursor: at }) => all.push(at), { after: 'test.0' })
  await eventually(() => expect(all).toEqual(['test.1', 'test.2', 'test.3']))
  client.close()
  await closed
  await expect(
    client.watch(() => Promise.reject(new Error('broken')), { after: 'test.0' }),
  ).resolves.toBeUndefined()
  const other = grantedOf()
  const broken = other.watch(() => Promise.reject(new Error('the handler broke')), { after: 'test.0' })
  await expect(broken).rejects.toThrow('the handler broke')
})

it('a test client follows fake timers', async () => {
  const client = createTestClient()
  vi.useFakeTimers({ now: NOON, toFake: ['Date'] })
  onTestFinished(() => void vi.useRealTimers())
  client.grant('cus_1', 'pro_1', { until: new Date(NOON + 1_000) })
  expect((await client.check('cus_1', { productId: 'pro_1' })).active).toBe(true)
  vi.setSystemTime(NOON + 1_000)
  expect((await client.check('cus_1', { productId: 'pro_1' })).active).toBe(false)
})

it('a test that takes what nobody has, or says no date, is told so', () => {
  const client = createTestClient()
  const wrong = expect.objectContaining({ code: 'invalid_request' })
  expect(() => client.revoke('cus_1', 'pro_1')).toThrow(wrong)
  expect(() => client.grant('cus_1', 'pro_1', { until: 'soon' })).toThrow(wrong)
  expect(() => client.grant('', 'pro_1')).toThrow(wrong)
})
