import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { CustomerDetails } from '../../src/provider/event.js'
import { addFacts, type CustomerFacts, type CustomerTelling } from '../../src/store/customer-facts.js'
import { findCustomersByReference } from '../../src/store/customer-references.js'
import { findCustomers, loadCustomers, saveCustomerFacts, type Telling } from '../../src/store/customers.js'
import { NOON, paymentEvent } from './sample-events.js'
import { temporaryStore } from './temporary-store.js'

const SILENT = paymentEvent().customer

function telling(
  told: Partial<CustomerDetails>,
  event: Partial<Omit<CustomerTelling, 'customer'>> = {},
): Telling {
  return { event: paymentEvent({ ...event, customer: { ...SILENT, ...told } }), isOfOwnSource: false }
}

async function storeThatLearnt(tellings: readonly Telling[]) {
  const db = await temporaryStore()
  await db.transaction().execute((trx) => saveCustomerFacts(trx, 'live', tellings))
  return db
}

describe('what is known of a customer', () => {
  it('is the newest telling of each detail, in whatever order and batches they are learnt', async () => {
    const db = await temporaryStore()
    const maybe = (...values: string[]) => fc.constantFrom(null, ...values)
    const tellings = fc.uniqueArray(
      fc.record({
        id: fc.constantFrom('evt_a', 'evt_b', 'evt_c', 'evt_d'),
        createdAt: fc.integer({ min: NOON, max: NOON + 2 }),
        customerId: fc.constant('cus_1'),
        customer: fc.record({
          email: maybe('a@example.com', 'b@example.com'),
          name: maybe('Ada', 'Bo'),
          communityId: maybe('1', '2'),
          communityUsername: maybe('ada', 'bo'),
          messengerId: maybe('3', '4'),
          messengerUsername: maybe('ada_', 'bo_'),
        }),
        externalRef: maybe('order-1', 'order-2'),
        metadata: fc.dictionary(fc.constantFrom('user', 'plan', '__proto__'), fc.constantFrom('1', '2')),
      }),
      { selector: ({ id, createdAt }) => `${createdAt} ${id}`, minLength: 1, maxLength: 6 },
    )
    await fc.assert(
      fc.asyncProperty(tellings, fc.integer({ min: 1, max: 3 }), async (learnt, batchSize) => {
        await db.deleteFrom('customers').execute()
        for (let start = 0; start < learnt.length; start += batchSize) {
          const batch = learnt
            .slice(start, start + batchSize)
            .map((event) => ({ event: paymentEvent(event), isOfOwnSource: false }))
          await db.transaction().execute((trx) => saveCustomerFacts(trx, 'live', batch))
        }
        const inOrder = [...learnt].sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1))
        const known = (await loadCustomers(db, 'live', ['cus_1'])).get('cus_1')
        for (const name of ['email', 'name', 'communityId', 'messengerUsername'] as const) {
          const newest = inOrder.findLast((event) => event.customer[name] !== null)
          expect(known?.facts[name]).toEqual(
            newest && { value: newest.customer[name], at: newest.createdAt, by: newest.id },
          )
        }
        const newest = inOrder.findLast((event) => Object.hasOwn(event.metadata, 'user'))
        expect(known?.facts['metadata.user']?.value).toBe(newest?.metadata.user)
        expect(known?.facts.externalRef?.value).toBe(
          inOrder.findLast((event) => event.externalRef !== null)?.externalRef ?? undefined,
        )
      }),
      { numRuns: 60 },
    )
  })

  it('is not taken away by an event that leaves it out or blank', () => {
    const known: CustomerFacts = { name: { value: 'Ada', at: NOON, by: 'evt_1' } }
    const silent = telling({ name: '' }, { id: 'evt_2', createdAt: NOON + 1 })
    expect(addFacts(known, silent.event)).toEqual(known)
  })

  it('is nothing where an event names no customer', async () => {
    const db = await storeThatLearnt([
      telling({ email: 'a@example.com' }, { customerId: null, externalRef: 'r' }),
    ])
    expect(await db.selectFrom('customers').selectAll().execute()).toEqual([])
    expect(await db.selectFrom('customer_references').selectAll().execute()).toEqual([])
  })
})

describe('finding customers', () => {
  it('goes by the newest email in any letter case, community id or messenger id', async () => {
    const db = await storeThatLearnt([
      telling({ email: 'Old@Example.com', communityId: '10', messengerId: '20' }),
      telling({ email: 'New@Example.com' }, { id: 'evt_2', createdAt: NOON + 1 }),
      telling({ email: 'NEW@example.com' }, { id: 'evt_3', customerId: 'cus_0' }),
    ])
    expect(await findCustomers(db, 'live', { email: 'new@EXAMPLE.com' })).toEqual(['cus_0', 'cus_1'])
    expect(await findCustomers(db, 'live', { email: 'old@example.com' })).toEqual([])
    expect(await findCustomers(db, 'live', { communityId: '10' })).toEqual(['cus_1'])
    expect(await findCustomers(db, 'live', { messengerId: '20' })).toEqual(['cus_1'])
    expect(await findCustomers(db, 'sandbox', { messengerId: '20' })).toEqual([])
  })

  it('goes by every reference that any of their events carried', async () => {
    const db = await storeThatLearnt([
      telling({}, { externalRef: 'order-1', metadata: { user: '7' } }),
      telling({}, { id: 'evt_2', createdAt: NOON + 1, externalRef: 'order-2' }),
      telling({}, { id: 'evt_3', customerId: 'cus_0', externalRef: 'order-2' }),
    ])
    expect(await findCustomersByReference(db, 'live', 'externalRef', 'order-1')).toEqual(['cus_1'])
    expect(await findCustomersByReference(db, 'live', 'externalRef', 'order-2')).toEqual(['cus_0', 'cus_1'])
    expect(await findCustomersByReference(db, 'live', 'metadata.user', '7')).toEqual(['cus_1'])
    expect(await findCustomersByReference(db, 'live', 'externalRef', '7')).toEqual([])
    expect(await findCustomersByReference(db, 'sandbox', 'externalRef', 'order-1')).toEqual([])
  })

  it('keeps no metadata as a reference that is longer than any reference', async () => {
    const db = await storeThatLearnt([
      telling({}, { metadata: { note: 'x'.repeat(256), id: 'x'.repeat(255) } }),
    ])
    const names = await db.selectFrom('customer_references').select('name').execute()
    expect(names).toEqual([{ name: 'metadata.id' }])
  })
})

/** The provider's word that it deleted them. */
function deletion(createdAt: number): Telling {
  const { event } = telling({}, { createdAt, externalRef: null, metadata: {} })
  return { event: { ...event, type: 'customer.deleted' }, isOfOwnSource: false }
}

describe('a deleted customer', () => {
  it.each([
    ['deleted last', [NOON, NOON + 5]],
    ['deleted first', [NOON + 5, NOON]],
  ])('is marked with the newest deletion and stays known, %s', async (_order, instants) => {
    const db = await storeThatLearnt([telling({ email: 'a@example.com' })])
    for (const at of instants) {
      await db.transaction().execute((trx) => saveCustomerFacts(trx, 'live', [deletion(at)]))
    }
    await db.transaction().execute((trx) => saveCustomerFacts(trx, 'live', [telling({ name: 'Ada' })]))
    const customer = (await loadCustomers(db, 'live', ['cus_1'])).get('cus_1')
    expect(customer).toMatchObject({
      deletedAt: NOON + 5,
      facts: { email: { value: 'a@example.com' }, name: { value: 'Ada' } },
    })
  })

  it('is marked before anything else is known of them', async () => {
    const db = await temporaryStore()
    await db.transaction().execute((trx) => saveCustomerFacts(trx, 'live', [deletion(NOON)]))
    expect(await loadCustomers(db, 'live', ['cus_1', 'cus_2'])).toEqual(
      new Map([['cus_1', { customerId: 'cus_1', facts: {}, deletedAt: NOON }]]),
    )
  })
})
