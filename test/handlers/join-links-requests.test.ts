import { describe, expect, it } from 'vitest'
import type { Messenger } from '../../src/handlers/telegram.js'
import { apiKey, bearer, NOW, openFront } from './daemon-front.js'

const EXPIRES_AT = NOW + 3_600_000

/** A front with a messenger that makes whatever link it is asked for, and what it was asked. */
async function linkingFront(overrides: Partial<Messenger> | null = {}) {
  const asked: unknown[] = []
  const messenger: Messenger = {
    linkToken: async (customer) => {
      asked.push(customer)
      return { token: 'made', url: 'https://t.me/bot?start=made', expiresAt: EXPIRES_AT }
    },
    invite: async (request) => {
      asked.push(request)
      return [{ groupId: '-1001', url: 'https://t.me/+made', expiresAt: EXPIRES_AT }]
    },
    ...overrides,
  }
  const front = await openFront({
    apiKeys: () => [apiKey('support', { scopes: ['write'], environments: ['live', 'sandbox'] })],
    messenger: () => (overrides === null ? null : messenger),
  })
  const post = async (path: string, body?: unknown) => {
    const answer = await fetch(`${front.url}/customers/${path}`, {
      method: 'POST',
      headers: { ...bearer('support'), 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    return { status: answer.status, ...((await answer.json()) as Record<string, unknown>) }
  }
  return { asked, post }
}

describe('POST /customers/:customerId/link-tokens', () => {
  it('answers with a one-time link', async () => {
    const { asked, post } = await linkingFront()
    expect(await post('cus_1/link-tokens')).toEqual({
      status: 201,
      url: 'https://t.me/bot?start=made',
      token: 'made',
      expiresAt: '2026-03-01T13:00:00.000Z',
    })
    await post('cus_1/link-tokens?environment=sandbox', {})
    expect(asked).toEqual([
      { environment: 'live', customerId: 'cus_1' },
      { environment: 'sandbox', customerId: 'cus_1' },
    ])
  })
})

describe('POST /customers/:customerId/invites', () => {
  it('answers with an invite to each group', async () => {
    const { asked, post } = await linkingFront()
    const invites = [{ groupId: '-1001', url: 'https://t.me/+made', expiresAt: '2026-03-01T13:00:00.000Z' }]
    expect(await post('cus_1/invites')).toEqual({ status: 201, invites })
    await post('cus_1/invites', { productId: 'pro_1' })
    await post('cus_1/invites', { groupId: '-1001' })
    const anybody = { environment: 'live', customerId: 'cus_1', productId: null, groupId: null }
    expect(asked).toEqual([anybody, { ...anybody, productId: 'pro_1' }, { ...anybody, groupId: '-1001' }])
  })
})

it.each(['cus_1/link-tokens', 'cus_1/invites'])(
  '/customers/%s makes nothing where no messenger is configured',
  async (path) => {
    const { post } = await linkingFront(null)
    expect(await post(path)).toMatchObject({ status: 409, code: 'platform_not_configured' })
  },
)
