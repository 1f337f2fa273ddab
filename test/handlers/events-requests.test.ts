import request from 'supertest'
import { describe, expect, it } from 'vitest'
import type { EventPageQuery, StoredEvent } from '../../src/store/event-questions.js'
import { apiKey, bearer, NOW, openFront } from './daemon-front.js'

describe('a question about stored events', () => {
  it.each([
    ['disposition=duplicate', 'disposition'],
    ['disposition=', 'disposition'],
    ['type=', 'type'],
    ['type=a&type=b', 'type'],
    ['customerId=%00', 'customerId'],
    ['endpoint=', 'endpoint'],
    ['from=yesterday', 'from'],
    ['to=2026-03-01', 'to'],
    ['from=2026-01-31T12:00:00.001Z&to=2026-01-31T12:00:00Z', 'from'],
    ['limit=101', 'limit'],
    ['cursor=5', 'cursor'],
    [`cursor=${Buffer.from('cus_1').toString('base64url')}`, 'cursor'],
  ])('cannot be ?%s', async (query, path) => {
    const { url } = await openFront({ apiKeys: () => [apiKey('support', { scopes: ['events'] })] })
    const answer = await request(url).get(`/events?${query}`).set(bearer('support'))
    expect(answer.status).toBe(400)
    expect(answer.body).toMatchObject({ code: 'invalid_request', errors: [{ path }] })
  })
})

/** One that came through an endpoint which is configured no more. */
const EVENT: StoredEvent = {
  environment: 'live',
  id: 'evt_1',
  endpoint: 'retired',
  receivedAt: NOW,
  disposition: 'applied',
  reason: null,
  generation: 'v3',
  type: 'payment.succeeded',
  createdAt: NOW,
  customerId: 'cus_1',
  source: null,
  deliveries: 1,
  lastReceivedAt: NOW,
  conflicts: 0,
  normalizerVersion: 1,
  bodySha256: '0'.repeat(64),
  bodyBytes: 2,
  bodyRemoved: null,
}

describe('the endpoint of stored events', () => {
  const isOfEvent = ({ filter: { endpoint, type } }: EventPageQuery) =>
    (endpoint === null || endpoint === EVENT.endpoint) && (type === null || type === EVENT.type)

  async function ask(query: string, next: number | null = null) {
    const { url } = await openFront({
      apiKeys: () => [apiKey('support', { scopes: ['events'] })],
      storedEvents: {
        readEventPage: async (question) => ({ items: isOfEvent(question) ? [EVENT] : [], next }),
        readEvent: async () => null,
        readExportPage: async () => ({
          lines: [],
          counts: { delivery: 0, reading: 0, removed: 0, altered: 0 },
          reached: 0,
          newest: 0,
        }),
        readEventBody: async () => null,
      },
    })
    const { status, body } = await request(url).get(`/events?${query}`).set(bearer('support'))
    return { status, body }
  }

  it('is refused where none is called so, and nothing came through one that was', async () => {
    const message = 'must be one of v3, manual: no stored event came through another'
    expect(await ask('endpoint=v4')).toMatchObject({
      status: 400,
      body: { code: 'invalid_request', errors: [{ path: 'endpoint', message }] },
    })
  })

  it.each([
    ['is configured', 'endpoint=v3', 0],
    ['is what was done by hand', 'endpoint=manual', 0],
    ['was configured once', 'endpoint=retired', 1],
    ['was configured once, and has nothing of this type', 'endpoint=retired&type=payment.failed', 0],
  ])('is taken where it %s', async (_, query, found) => {
    const { status, body } = await ask(query)
    expect(status).toBe(200)
    expect(body.items).toHaveLength(found)
  })

  it('is taken where not all that is stored could be looked at', async () => {
    expect(await ask('endpoint=v4', 7)).toMatchObject({ status: 200, body: { items: [] } })
  })
})
