import type { ManualEvent } from '../../src/provider/event.js'
import { minute } from './events.js'

/** What was done by hand to `cus_1`, at a minute of the example. */
export function byHand(
  type: ManualEvent['type'],
  at: number,
  fields: Partial<Pick<ManualEvent, 'productId' | 'until' | 'id'>> = {},
): ManualEvent {
  return {
    id: `man_${type}_${at}`,
    generation: null,
    createdAt: minute(at),
    apiVersion: null,
    customerId: 'cus_1',
    productId: 'pro_a',
    customer: {
      email: null,
      name: null,
      communityId: null,
      communityUsername: null,
      messengerId: null,
      messengerUsername: null,
    },
    externalRef: null,
    metadata: {},
    subject: 'manual',
    type,
    until: null,
    actor: 'ada',
    reason: null,
    ...fields,
  }
}
