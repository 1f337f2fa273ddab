import request from 'supertest'
import { describe, expect, it } from 'vitest'
import { bearer, customerQuestions, GOLD, openFront } from './daemon-front.js'

const LIST = '/products/pro_gold/customers'

/** A front on which these customers have the product. */
function frontWith(customerIds: readonly string[]) {
  return openFront({
    customers: customerQuestions({
      readProductCustomers: async ({ after, limit }) =>
        customerIds
          .filter((customerId) => customerId > after)
          .slice(0, limit)
          .map((customerId) => ({ customerId, entitlement: GOLD })),
    }),
  })
}

const numbered = (count: number) =>
  Array.from({ length: count }, (_, index) => `cus_${String(index).padStart(3, '0')}`)

describe('a list', () => {
  it.each([
    ['', 25, 20],
    ['?limit=1', 3, 1],
    ['?limit=100', 130, 100],
  ])('holds as many as it is asked for, 20 by default (%s)', async (query, there, shown) => {
    const { url } = await frontWith(numbered(there))
    const answer = await request(url).get(`${LIST}${query}`).set(bearer('app'))
    expect(answer.status).toBe(200)
    expect(answer.body.items).toHaveLength(shown)
    expect(answer.body.pagination).toEqual({ nextCursor: expect.any(String), hasMore: true })
  })
})
