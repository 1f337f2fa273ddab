import request from 'supertest'
import { describe, expect, it } from 'vitest'
import { apiKey, bearer, LIVE, openFront } from './daemon-front.js'

const GOLD_ON_THE_WIRE = {
  productId: 'pro_gold',
  active: true,
  status: 'ending',
  since: '2026-03-01T11:59:59.000Z',
  until: '2026-03-01T12:01:00.000Z',
  pastDue: false,
  sources: [
    {
      id: 'sub_1',
      kind: 'subscription',
      active: true,
      since: '2026-03-01T11:59:59.000Z',
      until: '2026-03-01T12:01:00.000Z',
      rail: 'card',
      pastDue: false,
      cancelAtPeriodEnd: true,
      periodEnd: '2026-03-01T12:01:00.000Z',
      reason: 'canceled',
      eventId: 'evt_1',
    },
  ],
}

describe('GET /entitlements/:customerId', () => {
  it('tells everything that the customer may use', async () => {
    const { url } = await openFront()
    const answer = await request(url).get('/entitlements/cus_gold').set(bearer('app'))
    expect(answer.status).toBe(200)
    expect(answer.headers['content-type']).toBe('application/json; charset=utf-8')
    expect(answer.headers['cache-control']).toBe('private, no-cache')
    expect(answer.body).toEqual({
      customerId: 'cus_gold',
      environment: 'live',
      asOf: '2026-03-01T12:00:00.000Z',
      validUntil: '2026-03-01T12:01:00.000Z',
      cursor: 'c_7',
      entitlements: [GOLD_ON_THE_WIRE],
      features: [],
    })
  })
})

describe('the ETag of an answer', () => {
  it.each([(tag: string) => tag, (tag: string) => `W/${tag}`, (tag: string) => `"older", ${tag}`, () => '*'])(
    'spares the body when the caller holds it already (%#)',
    async (held) => {
      const { url } = await openFront()
      for (const path of ['/entitlements/cus_gold', '/entitlements/cus_gold/pro_gold']) {
        const first = await request(url).get(path).set(bearer('app'))
        const tag = first.headers.etag ?? ''
        const second = await request(url)
          .get(path)
          .set({ ...bearer('app'), 'if-none-match': held(tag) })
        expect(second.status).toBe(304)
        expect(second.headers.etag).toBe(tag)
        expect(second.text).toBe('')
      }
    },
  )

  it('does not spare it when another one is held', async () => {
    const { url } = await openFront()
    const headers = { ...bearer('app'), 'if-none-match': '"older"' }
    expect((await request(url).get('/entitlements/cus_gold').set(headers)).status).toBe(200)
  })
})

describe('GET /entitlements/:customerId/:productId', () => {
  it('tells about the one product', async () => {
    const { url } = await openFront()
    const answer = await request(url).get('/entitlements/cus_gold/pro_gold').set(bearer('app'))
    expect(answer.body).toMatchObject({ ...GOLD_ON_THE_WIRE, customerId: 'cus_gold', environment: 'live' })
  })
})

describe('the environment of a question', () => {
  const both = () => [apiKey('app', { environments: ['live', 'sandbox'] })]

  it.each([
    ['live when both are configured', ['live', 'sandbox'], '', 'live'],
    ['the only one configured', ['sandbox'], '', 'sandbox'],
    ['live when none is configured', [], '', 'live'],
    ['the one asked for', ['live', 'sandbox'], '?environment=sandbox', 'sandbox'],
    ['the one asked for, though not configured', ['live'], '?environment=sandbox', 'sandbox'],
  ] as const)('is %s', async (_name, environments, query, expected) => {
    const endpoints = () => environments.map((environment) => ({ ...LIVE, environment }))
    const { url, questions } = await openFront({ apiKeys: both, endpoints })
    await request(url).get(`/entitlements/cus_gold${query}`).set(bearer('app'))
    expect(questions).toMatchObject([{ environment: expected }])
  })

  it('is the only one of the key, whatever is configured', async () => {
    const { url, questions } = await openFront({ endpoints: () => [{ ...LIVE, environment: 'sandbox' }] })
    const answer = await request(url).get('/entitlements/cus_gold').set(bearer('app'))
    expect(answer.status).toBe(200)
    expect(questions).toMatchObject([{ environment: 'live' }])
  })
})
