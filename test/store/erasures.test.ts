import { expect, it } from 'vitest'
import { saveCustomerFacts } from '../../src/store/customers.js'
import { forgetPerson } from '../../src/store/erasures.js'
import { paymentEvent } from '../entitlements/events.js'
import { temporaryStore } from './temporary-store.js'

const PERSON = {
  email: 'a@example.com',
  name: 'A',
  communityId: '1',
  communityUsername: 'a',
  messengerId: '2',
  messengerUsername: 'b',
}

it('forgets all that is kept of one person for itself, and of nobody else', async () => {
  const db = await temporaryStore()
  const told = ['cus_1', 'cus_2'].map((customerId) => ({
    ...paymentEvent({ type: 'payment.authorized', paymentId: 'pay_1', customerId }),
    customer: PERSON,
    externalRef: 'ref',
    metadata: { seat: '4' },
  }))
  const all = async () => ({
    customers: await db.selectFrom('customers').selectAll().orderBy('customer_id').execute(),
    references: await db.selectFrom('customer_references').selectAll().orderBy('customer_id').execute(),
    links: await db.selectFrom('join_links').selectAll().orderBy('sha256').execute(),
  })
  await db.transaction().execute(async (trx) => {
    await saveCustomerFacts(
      trx,
      'live',
      told.map((event) => ({ event, isOfOwnSource: false })),
    )
    const link = { environment: 'live', expires_at: 1, used_by: '2' } as const
    await trx
      .insertInto('join_links')
      .values([
        { ...link, kind: 'token', sha256: 'aa', customer_id: 'cus_1' },
        { ...link, kind: 'invite', sha256: 'bb', customer_id: 'cus_1' },
        { ...link, kind: 'token', sha256: 'cc', customer_id: 'cus_2' },
        { ...link, kind: 'invite', sha256: 'dd', customer_id: 'cus_2' },
      ])
      .execute()
  })
  const before = await all()
  await db.transaction().execute((trx) => forgetPerson(trx, 'live', 'cus_1'))
  expect(await all()).toEqual({
    customers: [
      { ...before.customers[0], facts: '{}', email: null, community_id: null, messenger_id: null },
      before.customers[1],
    ],
    references: before.references.filter(({ customer_id: id }) => id === 'cus_2'),
    links: before.links.filter(({ customer_id: id }) => id === 'cus_2'),
  })
})
