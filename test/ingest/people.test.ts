import fc from 'fast-check'
import { sql } from 'kysely'
import { expect, it } from 'vitest'
import { DOCUMENTED_POLICY } from '../../src/entitlements/policy.js'
import { createBatchWriter } from '../../src/ingest/commit.js'
import { loadCustomer, loadCustomers } from '../../src/store/customers.js'
import { migratedFile, open } from '../store/temporary-store.js'
import { deliveryOf } from './wire.js'

const AT = Date.UTC(2026, 5, 1)
const CUSTOMERS = ['cus_1', 'cus_2']

/** Event of one of few subscriptions, payments or customers, that tell several details, or none. */
const tellings = fc.record({
  minute: fc.integer({ min: 0, max: 9 }),
  type: fc.constantFrom('payment.authorized', 'subscription.renewed', 'customer.updated'),
  subscription: fc.constantFrom(null, 'sub_1', 'sub_2'),
  payment: fc.constantFrom('pay_1', 'pay_2'),
  customer: fc.constantFrom(null, ...CUSTOMERS),
  email: fc.constantFrom(null, 'a@example.com', 'b@example.com'),
  communityId: fc.constantFrom(null, '1', '2'),
  externalRef: fc.constantFrom(null, 'order-1', 'order-2'),
  seat: fc.constantFrom(null, '1', '2'),
})

type Told = typeof tellings extends fc.Arbitrary<infer Each> ? Each : never

/** What is known of a customer under each name, by what an event says of it. */
const FACTS: Readonly<Record<string, (told: Told) => string | null>> = {
  email: ({ email }) => email,
  communityId: ({ communityId }) => communityId,
  externalRef: ({ externalRef }) => externalRef,
  'metadata.seat': ({ seat }) => seat,
}

function delivered(told: Told, index: number) {
  const { minute, type, subscription, payment, customer, email, communityId, externalRef, seat } = told
  const data = {
    ...(type.startsWith('subscription') && { id: subscription ?? 'sub_1' }),
    payment_id: payment,
    subscription_id: subscription,
    product: { id: 'pro_1' },
    customer: customer === null ? null : { id: customer, email, communityId },
    ...(type.startsWith('customer') && { id: customer, email, communityId }),
    external_ref: externalRef,
    metadata: seat === null ? {} : { seat, note: 'x'.repeat(256) },
  }
  const createdAt = new Date(AT + minute * 60_000).toISOString()
  return deliveryOf(JSON.stringify({ id: `evt_${index}`, type, createdAt, data }))
}

const TOLD: Told = {
  minute: 1,
  type: 'payment.authorized',
  subscription: 'sub_1',
  payment: 'pay_1',
  customer: 'cus_1',
  email: 'a@example.com',
  communityId: null,
  externalRef: null,
  seat: null,
}
/** One batch tells the newest value twice, with an older one between. */
const NEWEST_TWICE = [
  TOLD,
  { ...TOLD, minute: 3, type: 'subscription.renewed', payment: 'pay_2' },
  { ...TOLD, minute: 2, email: 'b@example.com' },
]

it('knows of each customer what the newest event says, however sources change hands and events arrive', async () => {
  const cases = fc.array(tellings, { minLength: 1, maxLength: 12 }).chain((all) =>
    fc.record({
      all: fc.constant(all),
      order: fc.shuffledSubarray([...all.keys()], { minLength: all.length }),
      size: fc.integer({ min: 1, max: 4 }),
    }),
  )
  await fc.assert(
    fc.asyncProperty(cases, async ({ all, order, size }) => {
      const db = open(await migratedFile())
      await sql`pragma synchronous = off`.execute(db)
      const writeBatch = createBatchWriter({ db, policy: () => DOCUMENTED_POLICY, clock: () => AT })
      const deliveries = order.map((index) => delivered(all[index] ?? TOLD, index))
      while (deliveries.length > 0) await writeBatch(deliveries.splice(0, size))
      const inOrder = all
        .map((one, index) => ({ ...one, id: `evt_${index}` }))
        .sort((a, b) => a.minute - b.minute || (a.id < b.id ? -1 : 1))
      for (const customerId of CUSTOMERS) {
        const own = inOrder.filter(({ customer }) => customer === customerId)
        const stored = (await loadCustomers(db, 'live', [customerId])).get(customerId)
        const shown = await loadCustomer(db, 'live', customerId)
        for (const [name, told] of Object.entries(FACTS)) {
          const newest = own.findLast((one) => told(one) !== null)
          const value = (newest && told(newest)) ?? undefined
          expect(stored?.facts[name as 'email']?.value).toBe(value)
          expect(shown?.facts[name as 'email']).toEqual(
            newest && { value, at: AT + newest.minute * 60_000, by: newest.id },
          )
        }
      }
      // Longer than any reference, so that nobody is found by it.
      const notes = db.selectFrom('customer_references').selectAll().where('name', '=', 'metadata.note')
      expect(await notes.execute()).toEqual([])
      await db.destroy()
    }),
    { numRuns: 150, examples: [[{ all: NEWEST_TWICE, order: [0, 1, 2], size: 3 }]] },
  )
})
