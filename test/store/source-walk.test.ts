import { expect, it } from 'vitest'
import { DOCUMENTED_POLICY } from '../../src/entitlements/policy.js'
import type { StoredSourceKey } from '../../src/store/rebuild-progress.js'
import { loadNextSources } from '../../src/store/source-walk.js'
import { deleteSources } from '../../src/store/sources.js'
import { paymentEvent, subscriptionEvent } from '../entitlements/events.js'
import { type RebuildStore, storeUnder } from '../ingest/rebuild-store.js'
import { bodyOf, deliveryOf } from '../ingest/wire.js'

const EVENTS = [
  paymentEvent({ type: 'payment.authorized', paymentId: 'pay_1' }),
  paymentEvent({ type: 'payment.succeeded', paymentId: 'pay_1' }),
  paymentEvent({ type: 'payment.settled', paymentId: 'pay_1' }),
  paymentEvent({ type: 'payment.authorized', paymentId: 'pay_😀' }),
  subscriptionEvent({ type: 'subscription.created', subscriptionId: 'sub_1' }),
]

async function filledStore(): Promise<RebuildStore> {
  const live = EVENTS.map((event) => deliveryOf(bodyOf(event)))
  const sandbox = deliveryOf(bodyOf(EVENTS[4] as (typeof EVENTS)[number]), { environment: 'sandbox' })
  return storeUnder(DOCUMENTED_POLICY, [...live, sandbox])
}

/** Every source on the way, with the number of its events and whether it stands. */
async function walked({ db }: RebuildStore, rowsAtOnce: number): Promise<string[]> {
  const seen: string[] = []
  let after: StoredSourceKey | null = null
  for (;;) {
    const step = await loadNextSources(db, after, rowsAtOnce)
    if (step === null) return seen
    for (const { key, events, standing } of step.sources) {
      const stands = standing === null ? 'missing' : 'stands'
      seen.push(`${step.environment} ${key.kind} ${key.id}: ${events.length} ${stands}`)
    }
    after = step.last
  }
}

it.each([1, 2, 3, 4, 5, 6, 100])('comes by every source once and whole, %i rows at once', async (rows) => {
  expect(await walked(await filledStore(), rows)).toEqual([
    'live payment pay_1: 3 stands',
    'live payment pay_😀: 1 stands',
    'live subscription sub_1: 1 stands',
    'sandbox subscription sub_1: 1 stands',
  ])
})

it.each([1, 2, 100])(
  'comes by what stands without events, and by events of what is missing',
  async (rows) => {
    const store = await filledStore()
    await store.db
      .transaction()
      .execute((trx) => deleteSources(trx, 'live', [{ kind: 'payment', id: 'pay_1' }]))
    await store.db.deleteFrom('events').where('source_id', '=', 'pay_😀').execute()
    expect(await walked(store, rows)).toEqual([
      'live payment pay_1: 3 missing',
      'live payment pay_😀: 0 stands',
      'live subscription sub_1: 1 stands',
      'sandbox subscription sub_1: 1 stands',
    ])
  },
)

it('reads why an event waits, and what it says, whatever is in it', async () => {
  const event = paymentEvent({
    type: 'payment.authorized',
    paymentId: 'a","disposition":"x',
    customerId: null,
  })
  const { db } = await storeUnder(DOCUMENTED_POLICY, [deliveryOf(bodyOf(event))])
  const step = await loadNextSources(db, null, 10)
  expect(step?.sources[0]?.events).toMatchObject([
    { event: { paymentId: 'a","disposition":"x' }, disposition: 'held', reason: 'customer_unknown' },
  ])
})
