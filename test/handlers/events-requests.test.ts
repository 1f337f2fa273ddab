import request from 'supertest'
import { describe, expect, it } from 'vitest'
import { apiKey, bearer, NO_STORED_EVENTS, openFront } from './daemon-front.js'

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

it('an endpoint that nobody knows is taken where not all that is stored could be looked at', async () => {
  const { url } = await openFront({
    apiKeys: () => [apiKey('support', { scopes: ['events'] })],
    storedEvents: { ...NO_STORED_EVENTS, readEventPage: async () => ({ items: [], next: 7 }) },
  })
  const { status, body } = await request(url).get('/events?endpoint=v4').set(bearer('support'))
  expect([status, body.items]).toEqual([200, []])
})
