import request from 'supertest'
import { describe, expect, it } from 'vitest'
import { apiKey, bearer, openFront } from './daemon-front.js'

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
    ['limit=101', 'limit'],
    ['cursor=5', 'cursor'],
    [`cursor=${Buffer.from('cus_1').toString('base64url')}`, 'cursor'],
  ])('can not be ?%s', async (query, path) => {
    const { url } = await openFront({ apiKeys: () => [apiKey('support', { scopes: ['events'] })] })
    const answer = await request(url).get(`/events?${query}`).set(bearer('support'))
    expect(answer.status).toBe(400)
    expect(answer.body).toMatchObject({ code: 'invalid_request', errors: [{ path }] })
  })
})
