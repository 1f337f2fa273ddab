import type { CompiledQuery } from 'kysely'
import request from 'supertest'
import { describe, expect, it, onTestFinished } from 'vitest'
import { NEVER_GRANTED } from '../../src/entitlements/entitlement.js'
import { catalogOf } from '../../src/entitlements/features.js'
import { resultsOf } from '../../src/handlers/checks.js'
import { bulkInsert } from '../../src/store/bulk.js'
import { saveEntitlements } from '../../src/store/entitlements.js'
import { bearer, frontStore, NOW, openFront, unreadableStore } from './daemon-front.js'

const insertReferences = bulkInsert('customer_references')

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
    const db = await frontStore()
    await insertReferences(
      db,
      ids.map((id) => ({ environment: 'live', name: 'externalRef', value: 'shared', customer_id: id })),
    )
    /** Of the last customer, for good; of all others, ended. */
    const golds = ids.map((customerId) => {
      const isLast = customerId === 'cus_3999'
      const ended = { active: isLast, until: isLast ? null : NOW - 1, nextChangeAt: null } as const
      return { ...NEVER_GRANTED, ...ended, customerId, productId: 'pro_gold' }
    })
    await db.transaction().execute((trx) => saveEntitlements(trx, 'live', golds))
    const asked: (readonly string[])[] = []
    const execute = db.executeQuery.bind(db)
    db.executeQuery = (query) => {
      const { parameters, sql } = query as CompiledQuery
      if (sql.includes('from entitlements')) asked.push(JSON.parse(String(parameters[1])))
      return execute(query)
    }
    const { url } = await openFront({ db })
    const checks = Array.from({ length: 1_000 }, (_, i) => ({
      externalRef: 'shared',
      productId: i % 2 === 0 ? 'pro_gold' : `pro_${i + 1}`,
    }))
    const answer = await post(url, '/entitlements/check', JSON.stringify({ checks }))
    const { results } = (await answer.json()) as { results: readonly unknown[] }
    expect(results.slice(0, 2)).toEqual([
      { customerId: 'cus_3999', productId: 'pro_gold', active: true, until: null },
      { customerId: 'cus_0', productId: 'pro_2', active: false, until: null, unknown: true },
    ])
    expect(asked.flat().toSorted()).toEqual(ids.toSorted())
    expect(Math.max(...asked.map(({ length }) => length))).toBeLessThanOrEqual(500)
  })

  it('looks at each of many customers with one reference a few times, however many checks name it', async () => {
    const ids = Array.from({ length: 4_000 }, (_, i) => `cus_${i}`)
    let looks = 0
    const gold = {
      get productId() {
        looks += 1
        return 'pro_gold'
      },
      active: true,
      until: null,
    }
    const stored = {
      byReference: new Map([['shared', ids]]),
      grantsOf: new Map(ids.map((id) => [id, [gold]])),
      unknowns: new Set<string>(),
    }
    const checks = Array.from({ length: 1_000 }, () => ({ externalRef: 'shared', productId: 'pro_gold' }))
    const results = await resultsOf(checks, stored, catalogOf([]))
    expect(results).toHaveLength(1_000)
    expect(results[0]).toMatchObject({ active: true, until: null })
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
      // SQLite's own error, which nothing expects.
      db: unreadableStore(onTestFinished, (error) => error),
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
  const { url } = await openFront({ db: await frontStore(onTestFinished, there) })
  const answer = await request(url).get(`/products/pro_1/customers${query}`).set(bearer('app'))
  expect(answer.status).toBe(200)
  expect(answer.body.items).toHaveLength(shown)
  expect(answer.body.pagination).toEqual({ nextCursor: expect.any(String), hasMore: true })
})
