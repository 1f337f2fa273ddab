import { expect, it } from 'vitest'
import { searchCustomers } from '../../src/store/customer-search.js'
import { temporaryStore } from './temporary-store.js'

const COUNT = 500
const SEARCH = {
  environment: 'live',
  prefix: 'u',
  reference: 'externalRef',
  isPersonal: true,
  limit: 20,
} as const

it('one search looks at a limited number of matches, and the next one goes on behind them', async () => {
  const db = await temporaryStore()
  const customers = Array.from({ length: COUNT }, (_, i) => ({
    environment: 'live' as const,
    customer_id: `u_${i}`,
  }))
  const named = customers.map((one) => ({ ...one, name: 'externalRef', value: `u-${one.customer_id}` }))
  await db
    .insertInto('customers')
    .values(customers.map((one) => ({ ...one, facts: '{}' })))
    .execute()
  await db.insertInto('customer_references').values(named).execute()
  const other = { environment: 'live', customer_id: 'other' } as const
  await db
    .insertInto('customers')
    .values({ ...other, facts: '{}' })
    .execute()
  await db
    .insertInto('customer_references')
    .values({ ...other, name: 'externalRef', value: 'u~' })
    .execute()

  // All were listed by their ids, but for the last one.
  const begin = { by: 'reference', value: 'u-', customerId: 'u_' } as const
  const first = await searchCustomers(db, { ...SEARCH, after: begin })
  expect(first).toMatchObject({ items: [], next: { by: 'reference' } })
  const second = await searchCustomers(db, { ...SEARCH, after: first.next })
  expect(second).toMatchObject({ items: [{ customerId: 'other', by: 'reference', value: 'u~' }], next: null })
})
