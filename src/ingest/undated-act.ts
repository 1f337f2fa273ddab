import type { CustomerDetails, ManualEvent } from '../provider/event.js'
import type { ManualAct } from './delivery.js'

type ToldByAct = Pick<ManualEvent, 'id' | 'type' | 'customerId' | 'actor' | 'reason'> &
  Partial<Pick<ManualEvent, 'productId' | 'until'>> & {
    readonly identities?: Partial<Pick<CustomerDetails, 'communityId' | 'messengerId'>>
  }

/** The event of an act by hand, but for its time: what nobody tells is null. */
export function undatedAct(told: ToldByAct): ManualAct['undated'] {
  const { id, type, customerId, actor, reason, productId = null, until = null, identities = {} } = told
  return {
    id,
    generation: null,
    apiVersion: null,
    subject: 'manual',
    type,
    customerId,
    productId,
    until,
    customer: {
      email: null,
      name: null,
      communityId: identities.communityId ?? null,
      communityUsername: null,
      messengerId: identities.messengerId ?? null,
      messengerUsername: null,
    },
    externalRef: null,
    metadata: {},
    actor,
    reason,
  }
}
