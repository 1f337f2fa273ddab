import fc from 'fast-check'
import { expect, it } from 'vitest'
import { CHANGE_TYPES, typeOfChange } from '../../../src/entitlements/entitlement.js'
import { loadDueMessages, readWebhookState } from '../../../src/store/messages.js'
import { eventually } from '../../setup/eventually.js'
import { CHANGE, outboundStore, pass } from './outbound-store.js'
import { startReceiver, status } from './receiver.js'

const HOUR = 3_600_000
const [NONE, SOME] = [CHANGE.before, CHANGE.after]

const change = fc.record({
  customerId: fc.constantFrom('cus_1', 'cus_2', 'cus_3'),
  environment: fc.constantFrom('live' as const, 'sandbox' as const),
  before: fc.constantFrom(NONE, SOME),
  after: fc.constantFrom(NONE, SOME),
})
const filter = fc.record({
  types: fc.subarray([...CHANGE_TYPES], { minLength: 1 }),
  environments: fc.subarray(['live' as const, 'sandbox' as const], { minLength: 1 }),
  /** Its answers to the first attempts of all, before it is well. */
  failures: fc.array(fc.constantFrom(500, 429, 302, 404), { maxLength: 6 }),
})

it('sends to each address exactly what its filters let through, in the order of each customer, whatever is answered', async () => {
  const batches = fc.array(fc.array(change, { maxLength: 5 }), { maxLength: 4 })
  await fc.assert(
    fc.asyncProperty(batches, fc.array(filter, { minLength: 2, maxLength: 3 }), async (batched, filters) => {
      const store = await outboundStore()
      const addresses = await Promise.all(
        filters.map(async ({ failures, ...filtered }, n) => {
          const receiver = await startReceiver()
          const left = [...failures]
          const taken: string[] = []
          receiver.answerWith((res, message, count) => {
            const failure = left.shift()
            if (failure === undefined) taken.push(message.payload.data.productId)
            status(failure ?? 204)(res, message, count)
          })
          return { receiver, taken, address: { ...filtered, id: `to-${n}`, url: receiver.url } }
        }),
      )
      const outbound = await store.tell(...addresses.map(({ address }) => address))
      const changes = batched.flat().map((one, n) => ({ ...one, productId: `pro_${n}` }))
      const left = [...changes]
      for (const { length } of batched) await store.change(...left.splice(0, length))
      const expected = filters.map(({ types, environments }) =>
        changes.filter(
          (one) =>
            types.includes(typeOfChange(one.before, one.after)) && environments.includes(one.environment),
        ),
      )
      await eventually(
        async () => {
          // Time passes only while nothing is under way: a signature is good for minutes.
          const due = addresses.map(({ address: { id } }) => loadDueMessages(store.db, id, Date.now(), 1))
          if ((await Promise.all(due)).flat().length === 0) pass(outbound, HOUR)
          expect(addresses.map(({ taken }) => taken.length)).toEqual(expected.map(({ length }) => length))
        },
        { intervalMs: 60 },
      )
      await outbound.stop()
      for (const [n, { taken, receiver, address }] of addresses.entries()) {
        expect(receiver.refused).toEqual([])
        expect(await readWebhookState(store.db, address.id)).toMatchObject({ waiting: 0, failed: 0 })
        const byCustomer = Map.groupBy(
          expected[n] ?? [],
          ({ environment, customerId }) => `${environment}/${customerId}`,
        )
        for (const own of byCustomer.values()) {
          const products = own.map(({ productId }) => productId)
          expect(taken.filter((productId) => products.includes(productId))).toEqual(products)
        }
      }
    }),
    { numRuns: 5 },
  )
})
