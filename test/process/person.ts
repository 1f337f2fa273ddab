import type { SentEvent } from './load.js'

/** What tells who somebody is: nothing of it may be left once they are erased. */
export interface Person {
  readonly customerId: string
  readonly words: readonly string[]
  readonly events: readonly SentEvent[]
  /** When all of it began. */
  readonly at: string
}

const BEGUN_AT = Date.UTC(2026, 0, 31, 12)

/** Somebody with a subscription that is paid month after month, of whom each event tells everything. */
export function person(n: number, months = 3): Person {
  const customerId = `cus_person_${n}`
  const email = `person-${n}@private.example`
  const name = `Nobody Elses Name ${n}.`
  const communityId = `8035111022467${n + 1_000}`
  const reference = `crm-of-person-${n}.`
  const facts = {
    customer: { object: 'customer', id: customerId, email, name, communityId },
    product: { object: 'product', id: 'pro_1' },
    external_ref: reference,
    metadata: { seat: `${reference}seat` },
  }
  const events = Array.from({ length: months }, (_, month) => {
    const payment = `pay_person_${n}_${month}`
    const at = BEGUN_AT + month * 60_000
    const subscription = `sub_person_${n}`
    const type = month === 0 ? 'subscription.created' : 'subscription.renewed'
    return [
      sent(`evt_${payment}`, 'payment.authorized', at, {
        object: 'payment',
        id: payment,
        subscription_id: subscription,
        method: 'CARD',
        ...facts,
      }),
      sent(`evt_${payment}_cycle`, type, at + 1, {
        object: 'subscription',
        id: subscription,
        payment_id: payment,
        ...facts,
      }),
    ]
  })
  return {
    customerId,
    words: [email, name, communityId, reference],
    events: events.flat(),
    at: new Date(BEGUN_AT).toISOString(),
  }
}

function sent(id: string, type: string, createdAt: number, data: object): SentEvent {
  return {
    id,
    body: JSON.stringify({ id, type, createdAt: new Date(createdAt).toISOString(), livemode: true, data }),
  }
}
