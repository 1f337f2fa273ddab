import { expect, it } from 'vitest'
import { DOCUMENTED_POLICY } from '../../src/entitlements/policy.js'
import { loadNextSources, WALK_START, type WalkPlace } from '../../src/store/source-walk.js'
import { deleteSources } from '../../src/store/sources.js'
import { paymentEvent, subscriptionEvent } from '../entitlements/events.js'
import { type RebuildStore, storeUnder } from '../ingest/rebuild-store.js'
import { bodyOf, deliveryOf } from '../ingest/wire.js'

const EVENTS = [
  paymentEvent({ type: 'payment.authorized', paymentId: 'pay_2' }),
  paymentEvent({ type: 'payment.authorized', paymentId: 'pay_😀' }),
  subscriptionEvent({ type: 'subscription.created', subscriptionId: 'sub_1' }),
  paymentEvent({ type: 'payment.authorized', paymentId: 'pay_1' }),
  paymentEvent({ type: 'payment.succeeded', paymentId: 'pay_2' }),
  paymentEvent({ type: 'payment.settled', paymentId: 'pay_2' }),
]

async function filledStore(): Promise<RebuildStore> {
  const [first, ...live] = EVENTS.map((event) => deliveryOf(bodyOf(event)))
  const inSandbox = bodyOf(subscriptionEvent({ type: 'subscription.created', subscriptionId: 'sub_1' }))
  const sandbox = deliveryOf(inSandbox, { environment: 'sandbox' })
  return storeUnder(DOCUMENTED_POLICY, first ? [first, sandbox, ...live] : [])
}

/** Every source on the way, with the number of its events and whether it stands. */
async function walked({ db }: RebuildStore, rowsAtOnce: number): Promise<string[]> {
  const seen: string[] = []
  let place: WalkPlace = WALK_START
  for (;;) {
    const step = await loadNextSources(db, place, rowsAtOnce)
    if (step === null) return seen
    for (const [environment, sources] of step.sources) {
      for (const { key, events, standing } of sources) {
        const stands = standing === null ? 'missing' : 'stands'
        seen.push(`${environment} ${key.kind} ${key.id}: ${events.length} ${stands}`)
      }
    }
    place = step.place
  }
}

it.each([1, 2, 3, 4, 5, 6, 7])(
  'comes by every source once and whole, in the order in which they came to be, %i rows at once',
  async (rows) => {
    const seen = await walked(await filledStore(), rows)
    expect(seen.filter((source) => source.startsWith('live'))).toEqual([
      'live payment pay_2: 3 stands',
      'live payment pay_😀: 1 stands',
      'live subscription sub_1: 1 stands',
      'live payment pay_1: 1 stands',
    ])
    expect(seen.filter((source) => source.startsWith('sandbox'))).toEqual([
      'sandbox subscription sub_1: 1 stands',
    ])
  },
)

it.each([1, 2, 3, 100])(
  'comes by what stands without events, and then by events of what is missing, %i rows at once',
  async (rows) => {
    const store = await filledStore()
    await store.db.transaction().execute(async (trx) => {
      await deleteSources(trx, 'live', [
        { kind: 'payment', id: 'pay_2' },
        { kind: 'payment', id: 'pay_1' },
      ])
      await deleteSources(trx, 'sandbox', [{ kind: 'subscription', id: 'sub_1' }])
    })
    await store.db.deleteFrom('events').where('source_id', '=', 'pay_😀').execute()
    expect(await walked(store, rows)).toEqual([
      'live payment pay_😀: 0 stands',
      'live subscription sub_1: 1 stands',
      'live payment pay_1: 1 missing',
      'live payment pay_2: 3 missing',
      'sandbox subscription sub_1: 1 missing',
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
  const step = await loadNextSources(db, WALK_START, 10)
  expect(step?.sources.get('live')?.[0]?.events).toMatchObject([
    { event: { paymentId: 'a","disposition":"x' }, disposition: 'held', reason: 'customer_unknown' },
  ])
})
