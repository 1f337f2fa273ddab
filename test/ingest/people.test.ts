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

/** An event of one of few subscriptions, payments or customers, that tells an email and a seat, or neither. */
const tellings = fc.record({
  minute: fc.integer({ min: 0, max: 9 }),
  type: fc.constantFrom('payment.authorized', 'subscription.renewed', 'customer.updated'),
  subscription: fc.constantFrom(null, 'sub_1', 'sub_2'),
  payment: fc.constantFrom('pay_1', 'pay_2'),
  customer: fc.constantFrom(null, ...CUSTOMERS),
  email: fc.constantFrom(null, 'a@example.com', 'b@example.com'),
  seat: fc.constantFrom(null, '1', '2'),
})

type Told = typeof tellings extends fc.Arbitrary<infer Each> ? Each : never

function delivered({ minute, type, subscription, payment, customer, email, seat }: Told, index: number) {
  const id = type.startsWith('subscription') ? { id: subscription ?? 'sub_1' } : {}
  const data = {
    ...id,
    payment_id: payment,
    subscription_id: subscription,
    product: { id: 'pro_1' },
    customer: customer === null ? null : { id: customer, email },
    ...(type.startsWith('customer') ? { id: customer, email } : {}),
    metadata: seat === null ? {} : { seat },
  }
  const createdAt = new Date(AT + minute * 60_000).toISOString()
  return deliveryOf(JSON.stringify({ id: `evt_${index}`, type, createdAt, data }))
}

it('knows of each customer what the newest event says, however sources change hands and events arrive', async () => {
  const cases = fc.array(tellings, { minLength: 1, maxLength: 12 }).chain((all) =>
    fc.record({
      all: fc.constant(all.map((one, index) => ({ ...one, index }))),
      order: fc.shuffledSubarray([...all.keys()], { minLength: all.length }),
      size: fc.integer({ min: 1, max: 4 }),
    }),
  )
  await fc.assert(
    fc.asyncProperty(cases, async ({ all, order, size }) => {
      const db = open(await migratedFile())
      await sql`pragma synchronous = off`.execute(db)
      const writeBatch = createBatchWriter({ db, policy: () => DOCUMENTED_POLICY, clock: () => AT })
      const deliveries = order.flatMap((index) => {
        const one = all[index]
        return one === undefined ? [] : [delivered(one, index)]
      })
      while (deliveries.length > 0) await writeBatch(deliveries.splice(0, size))
      const inOrder = [...all].sort(
        (a, b) => a.minute - b.minute || (`evt_${a.index}` < `evt_${b.index}` ? -1 : 1),
      )
      for (const customerId of CUSTOMERS) {
        const own = inOrder.filter(({ customer }) => customer === customerId)
        const stored = (await loadCustomers(db, 'live', [customerId])).get(customerId)
        const shown = await loadCustomer(db, 'live', customerId)
        for (const [name, told] of [
          ['email', ({ email }: Told) => email],
          ['metadata.seat', ({ seat }: Told) => seat],
        ] as const) {
          const newest = own.findLast((one) => told(one) !== null)
          const value = (newest && told(newest)) ?? undefined
          expect(stored?.facts[name]?.value).toBe(value)
          expect(shown?.facts[name]).toEqual(
            newest && { value, at: AT + newest.minute * 60_000, by: `evt_${newest.index}` },
          )
        }
      }
      await db.destroy()
    }),
    { numRuns: 150 },
  )
})

it('knows the newest value where the first batch about a customer tells it twice, with an older one between', async () => {
  const told = { subscription: 'sub_1', customer: 'cus_1', seat: null } as const
  const db = open(await migratedFile())
  const writeBatch = createBatchWriter({ db, policy: () => DOCUMENTED_POLICY, clock: () => AT })
  await writeBatch([
    delivered(
      { ...told, minute: 1, type: 'payment.authorized', payment: 'pay_1', email: 'a@example.com' },
      1,
    ),
    delivered(
      { ...told, minute: 3, type: 'subscription.renewed', payment: 'pay_2', email: 'a@example.com' },
      2,
    ),
    delivered(
      { ...told, minute: 2, type: 'payment.authorized', payment: 'pay_1', email: 'b@example.com' },
      3,
    ),
  ])
  const stored = (await loadCustomers(db, 'live', ['cus_1'])).get('cus_1')
  expect(stored?.facts.email?.value).toBe('a@example.com')
  await db.destroy()
})
