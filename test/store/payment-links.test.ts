import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { PaymentLink } from '../../src/entitlements/source-of.js'
import { learnLinks, loadLinks } from '../../src/store/payment-links.js'
import { NOON } from './sample-events.js'
import { temporaryStore } from './temporary-store.js'

function naming(
  subscriptionId: string,
  linkedAt: number,
  linkedBy: string,
  paymentId = 'pay_1',
): PaymentLink {
  return { paymentId, subscriptionId, linkedAt, linkedBy }
}

describe('the link of a payment to its subscription', () => {
  it('is the newest naming, by time and then by event, in whatever order and batches they are learnt', async () => {
    const db = await temporaryStore()
    const namings = fc.uniqueArray(
      fc.record({
        paymentId: fc.constantFrom('pay_1', 'pay_2'),
        subscriptionId: fc.constantFrom('sub_1', 'sub_2', 'sub_3'),
        linkedAt: fc.integer({ min: NOON, max: NOON + 2 }),
        linkedBy: fc.constantFrom('evt_a', 'evt_b', 'evt_B', 'evt_é', 'evt_\u{1f511}', 'evt_\uffee'),
      }),
      {
        selector: ({ linkedBy, linkedAt, paymentId }) => `${linkedBy} ${linkedAt} ${paymentId}`,
        minLength: 1,
      },
    )
    await fc.assert(
      fc.asyncProperty(namings, fc.integer({ min: 1, max: 4 }), async (learnt, batchSize) => {
        await db.deleteFrom('payment_links').execute()
        for (let start = 0; start < learnt.length; start += batchSize) {
          await db
            .transaction()
            .execute((trx) =>
              learnLinks(trx, 'live', ['pay_1', 'pay_2'], learnt.slice(start, start + batchSize)),
            )
        }
        const newest = new Map(
          [...learnt]
            .sort((a, b) => a.linkedAt - b.linkedAt || (a.linkedBy < b.linkedBy ? -1 : 1))
            .map((link) => [link.paymentId, link]),
        )
        expect(await loadLinks(db, 'live', ['pay_1', 'pay_2'])).toEqual(newest)
      }),
      { numRuns: 60 },
    )
  })

  it('tells which payments belong elsewhere from now on', async () => {
    const db = await temporaryStore()
    const learn = async (...namings: PaymentLink[]) => {
      const learnt = await db.transaction().execute((trx) => learnLinks(trx, 'live', ['pay_1'], namings))
      expect(learnt.links).toEqual(await loadLinks(db, 'live', ['pay_1']))
      return learnt.changes
    }
    expect(await learn(naming('sub_1', NOON, 'evt_1'))).toEqual([
      { paymentId: 'pay_1', from: null, to: 'sub_1', linkedBy: 'evt_1' },
    ])
    expect(await learn(naming('sub_1', NOON + 1, 'evt_2'))).toEqual([])
    expect(await learn(naming('sub_2', NOON, 'evt_3'))).toEqual([])
    expect(await learn(naming('sub_3', NOON + 2, 'evt_4'), naming('sub_4', NOON + 3, 'evt_5'))).toEqual([
      { paymentId: 'pay_1', from: 'sub_1', to: 'sub_4', linkedBy: 'evt_5' },
    ])
    expect(await learn()).toEqual([])
  })

  it('is one for each environment', async () => {
    const db = await temporaryStore()
    await db
      .transaction()
      .execute((trx) => learnLinks(trx, 'sandbox', ['pay_1'], [naming('sub_1', NOON, 'evt_1')]))
    expect(await loadLinks(db, 'live', ['pay_1'])).toEqual(new Map())
  })
})
