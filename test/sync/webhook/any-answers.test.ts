import fc from 'fast-check'
import { expect, it } from 'vitest'
import { loadDueMessages } from '../../../src/store/messages.js'
import { eventually } from '../../setup/eventually.js'
import { outboundStore, pass } from './outbound-store.js'
import { startReceiver, status } from './receiver.js'

const HOUR = 3_600_000
const CUSTOMERS = ['cus_1', 'cus_2', 'cus_3']
const PRODUCTS = ['pro_1', 'pro_2', 'pro_3']

it('tells every customer’s changes in order, each until it is taken, whatever is answered', async () => {
  const failures = fc.array(fc.constantFrom(500, 429, 302, 404), { maxLength: 2 })
  const answers = fc.dictionary(
    fc.constantFrom(...CUSTOMERS.flatMap((one) => PRODUCTS.map((p) => `${one}/${p}`))),
    failures,
  )
  await fc.assert(
    fc.asyncProperty(answers, async (failing) => {
      const store = await outboundStore()
      const receiver = await startReceiver()
      const left = new Map(Object.entries(failing).map(([name, statuses]) => [name, [...statuses]]))
      const taken: string[] = []
      receiver.answerWith((res, message, count) => {
        const name = `${message.payload.data.customerId}/${message.payload.data.productId}`
        const failure = left.get(name)?.shift()
        if (failure === undefined) taken.push(name)
        status(failure ?? 204)(res, message, count)
      })
      const outbound = await store.tell(receiver)
      for (const productId of PRODUCTS)
        await store.change(...CUSTOMERS.map((customerId) => ({ customerId, productId })))
      await eventually(
        async () => {
          // Time passes only while nothing is under way: a signature is good for minutes.
          if ((await loadDueMessages(store.db, Date.now(), 1)).length === 0) pass(outbound, HOUR)
          expect(taken).toHaveLength(CUSTOMERS.length * PRODUCTS.length)
        },
        { intervalMs: 120 },
      )
      await outbound.stop()
      for (const customer of CUSTOMERS) {
        expect(taken.filter((name) => name.startsWith(customer))).toEqual(
          PRODUCTS.map((p) => `${customer}/${p}`),
        )
      }
      expect(receiver.refused).toEqual([])
    }),
    { numRuns: 5 },
  )
})
