import fc from 'fast-check'
import type { Delivery } from '../../src/ingest/delivery.js'
import { mixedHistory } from '../entitlements/histories.js'
import { bodyOf, deliveryOf } from '../ingest/wire.js'

/** Deliveries of several sources and customers, of which each goes to one of the two environments. */
export const deliveries: fc.Arbitrary<readonly Delivery[]> = fc
  .tuple(mixedHistory, fc.infiniteStream(fc.constantFrom('live', 'live', 'sandbox')))
  .map(([events, environments]) =>
    events.map((event) => deliveryOf(bodyOf(event), { environment: environments.next().value })),
  )
