import fc from 'fast-check'
import type { NormalizedEvent } from '../../src/provider/event.js'
import type { DeliveryInput } from '../../src/store/events.js'
import { byHand } from '../entitlements/events.js'
import { mixedHistory } from '../entitlements/histories.js'
import { bodyOf, deliveryOf } from './wire.js'

const NOW = Date.UTC(2030, 0, 1)

/** The same deliveries in another order, some of them twice, in batches of any size. */
export function redelivered<One extends DeliveryInput>(deliveries: readonly One[]): fc.Arbitrary<One[][]> {
  return fc
    .tuple(fc.subarray([...deliveries]), fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1 }))
    .chain(([again, sizes]) =>
      fc
        .shuffledSubarray([...deliveries, ...again], { minLength: deliveries.length + again.length })
        .map((all) => {
          const batches: One[][] = []
          for (let i = 0; all.length > 0; i += 1) batches.push(all.splice(0, sizes[i % sizes.length]))
          return batches
        }),
    )
}

export const deliveriesOf = (events: readonly NormalizedEvent[]) =>
  events.map((event) => deliveryOf(bodyOf(event)))

/** Each event tells of the person too, and some of the people are erased at some time. */
export const withErasures = fc
  .tuple(mixedHistory, fc.subarray(['cus_1', 'cus_2'], { minLength: 1 }), fc.nat(90_000))
  .map(([events, erased, at]) => {
    const told = events.map((event) => {
      const body = JSON.parse(bodyOf(event)) as { data: { customer?: object | null } }
      const { customer } = body.data
      const details = { email: `${event.customerId}@example.com`, name: 'Some Body' }
      const data = customer
        ? { ...body.data, customer: { ...customer, ...details }, external_ref: 'ref' }
        : body.data
      return deliveryOf(JSON.stringify({ ...body, data }))
    })
    const acts = erased.map((customerId, index): DeliveryInput => {
      const act = { ...byHand('manual.erased', at + index, { productId: null }), customerId }
      const body = Buffer.from(JSON.stringify({ ...act, id: `man_${customerId}` }))
      return { endpoint: 'manual', environment: 'live', body, headers: null, receivedAt: NOW }
    })
    return [...told, ...acts]
  })
