import { customerOf, person } from './customer.js'
import type { Envelope } from './envelope.js'
import type { OtherEvent } from './event.js'
import { eitherCasing, id, readMetadata } from './fields.js'
import { isUsableId } from './ids.js'

const wireOther = eitherCasing({ customer: person, customerId: id })
type WireOther = ReturnType<typeof wireOther>

/**
 * An event that nothing follows from. Only whom it is about is read, so that the person can be shown and
 * erased with all that is stored of them; an id that can't be kept is left out, since nothing hangs on it.
 */
export function otherEvent(envelope: Envelope): OtherEvent {
  const { customerId, customer } = customerOf([{ id: shownCustomer(wireOther(envelope.data)) }])
  const { id, generation, createdAt, apiVersion } = envelope
  return {
    id,
    generation,
    createdAt,
    apiVersion,
    subject: 'other',
    type: envelope.type,
    customerId,
    customer,
    productId: null,
    externalRef: null,
    metadata: readMetadata(null),
  }
}

function shownCustomer({ customer, customerId }: WireOther): string | null {
  const shown = customer.id ?? customerId
  return shown !== null && isUsableId(shown) ? shown : null
}
