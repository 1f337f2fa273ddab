import request from 'supertest'
import { describe, expect, it } from 'vitest'
import type { Entitlement } from '../../src/entitlements/model.js'
import { LatchkeyError } from '../../src/errors.js'
import { answerTo, bearer, customerQuestions, GOLD, NOW, openFront } from './daemon-front.js'

const JSON_TYPE = { 'content-type': 'application/json' }
const LOOKUP = JSON.stringify({ email: 'a@example.com' })
const CHECK = JSON.stringify({ checks: [{ customerId: 'cus_1', productId: 'pro_1' }] })
const READ = ['/entitlements?externalRef=u1', '/customers/cus_1', '/products/pro_1/customers']
const POSTED = [
  ['/entitlements/lookup', LOOKUP],
  ['/entitlements/check', CHECK],
] as const

/** Sends each of the five questions, and gives their answers. */
async function askAll(url: string, headers: Record<string, string>) {
  const read = READ.map((path) => fetch(`${url}${path}`, { headers }))
  const posted = POSTED.map(([path, body]) =>
    fetch(`${url}${path}`, { method: 'POST', headers: { ...headers, ...JSON_TYPE }, body }),
  )
  return Promise.all([...read, ...posted])
}

const statusOf = ({ status }: Response) => status

describe('a question about customers', () => {
  it('is answered 503 while the store is away, and never as if nobody were there', async () => {
    const away = async () => {
      throw new LatchkeyError('store_unavailable', 'The store cannot be read.')
    }
    const customers = customerQuestions({
      readAccesses: away,
      findByReference: away,
      findByReferences: away,
      findByDetail: away,
      readCustomer: away,
      readProductCustomers: away,
    })
    const { url } = await openFront({ customers })
    expect((await askAll(url, bearer('app'))).map(statusOf)).toEqual([503, 503, 503, 503, 503])
  })

  it.each([
    '',
    'externalRef=',
    `externalRef=${'x'.repeat(256)}`,
    'externalRef=a%00',
    'externalRef=a&externalRef=b',
  ])('cannot be about the reference "%s"', async (query) => {
    const { url } = await openFront()
    const answer = await fetch(`${url}/entitlements?${query}`, { headers: bearer('app') })
    expect(answer.status).toBe(400)
    expect(await answer.json()).toMatchObject({
      code: 'invalid_request',
      errors: [{ path: 'externalRef' }],
    })
  })

  it.each(['lookup', 'check'])('leaves a customer called "%s" to be asked about', async (customerId) => {
    const { url, questions } = await openFront()
    const answer = await request(url).get(`/entitlements/${customerId}`).set(bearer('app'))
    expect(answer.body).toMatchObject({ customerId, entitlements: [] })
    expect(questions).toMatchObject([{ customerId }])
  })
})

describe('the body of a question', () => {
  async function post(path: string, body: string, headers: Record<string, string> = JSON_TYPE) {
    const { url } = await openFront()
    const init = { method: 'POST', headers: { ...bearer('app'), ...headers }, body: Buffer.from(body) }
    const answer = await fetch(`${url}${path}`, init)
    return { status: answer.status, body: (await answer.json()) as Record<string, unknown> }
  }

  it.each([
    { 'content-type': 'text/plain' },
    { 'content-type': 'application/x-www-form-urlencoded' },
    { 'content-type': 'application/jsonp' },
    {},
  ])('must say that it is JSON: %o', async (headers: Record<string, string>) => {
    for (const [path, body] of POSTED) {
      const answer = await post(path, body, headers)
      expect(answer).toMatchObject({ status: 415, body: { code: 'media_type_not_supported' } })
    }
  })

  it.each(['application/json; charset=utf-8', 'Application/JSON', 'application/vnd.app+json'])(
    'may say so as %s',
    async (type) => {
      for (const [path, body] of POSTED) {
        expect((await post(path, body, { 'content-type': type })).status).toBe(200)
      }
    },
  )

  it.each(['{', 'null', '[]', '""', '', '{"email":1}', '{"checks":{}}'])(
    'is refused where it is not what was asked for: %s',
    async (body) => {
      for (const [path] of POSTED) {
        const answer = await post(path, body)
        expect(answer).toMatchObject({ status: 400, body: { code: 'invalid_request' } })
        expect(answer.body.errors).not.toEqual([])
      }
    },
  )

  it.each([
    {},
    { email: 'a@example.com', communityId: '1' },
    { email: 'a@example.com', messengerId: '1' },
    { communityId: '1', messengerId: '1' },
  ])('names exactly one detail to look up: %o', async (lookup) => {
    const answer = await post('/entitlements/lookup', JSON.stringify(lookup))
    const message = 'needs exactly one of email, communityId, messengerId'
    expect(answer).toMatchObject({ status: 400, body: { errors: [{ path: '', message }] } })
  })

  it.each([{ email: '' }, { email: 'a\u0000' }, { communityId: 'x'.repeat(256) }, { messengerId: 7 }])(
    'names a detail that someone can have: %o',
    async (lookup) => {
      const answer = await post('/entitlements/lookup', JSON.stringify(lookup))
      expect(answer).toMatchObject({ status: 400, body: { errors: [{ path: Object.keys(lookup)[0] }] } })
    },
  )

  it.each([
    [{ productId: 'p' }],
    [{ customerId: 'c', externalRef: 'r', productId: 'p' }],
    [{ customerId: 'c' }],
    [{ customerId: '', productId: 'p' }],
    [{ customerId: 'c', productId: 'p', extra: 1 }],
  ])('names one customer and one product in each check: %o', async (check) => {
    const fine = { customerId: 'c', productId: 'p' }
    const answer = await post('/entitlements/check', JSON.stringify({ checks: [fine, check] }))
    expect(answer.status).toBe(400)
    const [error] = answer.body.errors as { path: string }[]
    expect(error?.path).toMatch(/^checks\W1/)
  })

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
        readAccesses: async ({ environment, customerIds }) => {
          asked.push(customerIds)
          return customerIds.map((customerId) => ({
            ...answerTo({ environment, customerId, at: null }),
            entitlements: [goldOf(customerId)],
          }))
        },
      }),
    })
    const checks = Array.from({ length: 1_000 }, (_, i) => ({
      externalRef: 'shared',
      productId: i % 2 === 0 ? 'pro_gold' : `pro_${i}`,
    }))
    const answer = await fetch(`${url}/entitlements/check`, {
      method: 'POST',
      headers: { ...bearer('app'), ...JSON_TYPE },
      body: JSON.stringify({ checks }),
    })
    const { results } = (await answer.json()) as { results: readonly unknown[] }
    expect(results.slice(0, 2)).toEqual([
      { customerId: 'cus_3999', productId: 'pro_gold', active: true, until: null },
      { customerId: 'cus_0', productId: 'pro_1', active: false, until: null },
    ])
    expect(asked.flat()).toEqual(ids)
    expect(Math.max(...asked.map(({ length }) => length))).toBeLessThanOrEqual(100)
    expect(looks).toBeLessThanOrEqual(3 * ids.length)
  })

  it.each([
    [0, 400],
    [1_000, 200],
    [1_001, 400],
  ])('may hold 1 to 1000 checks: %i', async (count, status) => {
    const checks = Array.from({ length: count }, (_, i) => ({ customerId: `cus_${i}`, productId: 'p' }))
    expect((await post('/entitlements/check', JSON.stringify({ checks }))).status).toBe(status)
  })

  it('is never logged', async () => {
    const { url, logged } = await openFront({
      customers: customerQuestions({
        findByDetail: async () => {
          throw new Error('a bug')
        },
      }),
    })
    const init = { method: 'POST', headers: { ...bearer('app'), ...JSON_TYPE }, body: LOOKUP }
    expect((await fetch(`${url}/entitlements/lookup`, init)).status).toBe(500)
    expect(logged).toHaveLength(1)
    expect(JSON.stringify(logged)).not.toContain('a@example.com')
  })
})
