import request from 'supertest'
import { describe, expect, it } from 'vitest'
import type { Entitlement } from '../../src/entitlements/model.js'
import { bearer, customerQuestions, GOLD, NOW, openFront } from './daemon-front.js'

const LOOKUP = '{"email":"a@example.com"}'
const HEADERS = { ...bearer('app'), 'content-type': 'application/json' }
const post = (url: string, path: string, body: string) =>
  fetch(`${url}${path}`, { method: 'POST', headers: HEADERS, body })

describe('a question about customers', () => {
  it.each(['lookup', 'check'])('leaves a customer called "%s" to be asked about', async (customerId) => {
    const { url, questions } = await openFront()
    const answer = await request(url).get(`/entitlements/${customerId}`).set(bearer('app'))
    expect(answer.body).toMatchObject({ customerId, entitlements: [] })
    expect(questions).toMatchObject([{ customerId }])
  })
})

describe('the body of a question', () => {
  it('reads each of the many customers with one reference once, some at a time', async () => {
    const ids = Array.from({ length: 4_000 }, (_, i) => `cus_${i}`)
    const asked: (readonly string[])[] = []
    let looks = 0
    /** Of the last customer, for good; of all others, ended. */
    const goldOf = (customerId: string): Entitlement => ({
      ...GOLD,
      get productId() {
        looks += 1
        return 'pro_gold'
      },
      active: customerId === 'cus_3999',
      until: customerId === 'cus_3999' ? null : NOW - 1,
    })
    const { url } = await openFront({
      customers: customerQuestions({
        findByReferences: async () => new Map([['shared', ids]]),
        readGrants: async ({ customerIds }) => {
          asked.push(customerIds)
          return new Map(customerIds.map((customerId) => [customerId, [goldOf(customerId)]]))
        },
      }),
    })
    const checks = Array.from({ length: 1_000 }, (_, i) => ({
      externalRef: 'shared',
      productId: i % 2 === 0 ? 'pro_gold' : `pro_${i}`,
    }))
    const answer = await post(url, '/entitlements/check', JSON.stringify({ checks }))
    const { results } = (await answer.json()) as { results: readonly unknown[] }
    expect(results.slice(0, 2)).toEqual([
      { customerId: 'cus_3999', productId: 'pro_gold', active: true, until: null },
      { customerId: 'cus_0', productId: 'pro_1', active: false, until: null, unknown: true },
    ])
    expect(asked.flat()).toEqual(ids)
    expect(Math.max(...asked.map(({ length }) => length))).toBeLessThanOrEqual(500)
    expect(looks).toBeLessThanOrEqual(3 * ids.length)
  })

  it.each([
    [0, 400],
    [1_000, 200],
    [1_001, 400],
  ])('may hold 1 to 1000 checks: %i', async (count, status) => {
    const checks = Array.from({ length: count }, (_, i) => ({ customerId: `cus_${i}`, productId: 'p' }))
    const { url } = await openFront()
    expect((await post(url, '/entitlements/check', JSON.stringify({ checks }))).status).toBe(status)
  })

  it('is never logged', async () => {
    const { url, logged } = await openFront({
      customers: customerQuestions({
        findByDetail: async () => {
          throw new Error('a bug')
        },
      }),
    })
    expect((await post(url, '/entitlements/lookup', LOOKUP)).status).toBe(500)
    expect(logged).toHaveLength(1)
    expect(JSON.stringify(logged)).not.toContain('a@example.com')
  })
})

it.each([
  ['', 25, 20],
  ['?limit=1', 3, 1],
  ['?limit=100', 130, 100],
])('a list holds as many as it is asked for, 20 by default (%s)', async (query, there, shown) => {
  const ids = Array.from({ length: there }, (_, index) => `cus_${String(index).padStart(3, '0')}`)
  const { url } = await openFront({
    customers: customerQuestions({
      readProductCustomers: async ({ limit }) =>
        ids.slice(0, limit).map((customerId) => ({ customerId, entitlement: GOLD })),
    }),
  })
  const answer = await request(url).get(`/products/pro_gold/customers${query}`).set(bearer('app'))
  expect(answer.status).toBe(200)
  expect(answer.body.items).toHaveLength(shown)
  expect(answer.body.pagination).toEqual({ nextCursor: expect.any(String), hasMore: true })
})
