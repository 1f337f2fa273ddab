import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { NormalizedEvent } from '../../src/provider/event.js'
import { normalise } from '../../src/provider/normalise.js'
import { redact, withoutPerson } from '../../src/provider/redact.js'
import { byHand } from '../entitlements/events.js'

const ERASED = new Set(['cus_ada', 'cus_eve'])
const DETAILS = { email: 'ada@example.com', name: 'Ada', communityId: '1', messengerUsername: 'ada_x' }
const AT = Date.UTC(2026, 2, 1)

/** A delivery as it is stored, and what the program reads of it. */
function delivery(type: string, data: unknown, owner: string | null = null) {
  const told = { id: 'evt_1', type, createdAt: new Date(AT).toISOString(), data }
  const body = Buffer.from(JSON.stringify(told))
  const read = normalise(body, { environment: 'live', receivedAt: AT })
  if (!read.ok) throw new Error(read.reason)
  return { event: read.event, owner, body }
}

function left(redacted: ReturnType<typeof redact>): unknown {
  return redacted?.body && (JSON.parse(String(redacted.body)) as { readonly data: unknown }).data
}

describe('of a delivery of somebody erased', () => {
  const data = {
    object: 'payment',
    id: 'pay_1',
    customer: { object: 'customer', id: 'cus_ada', ...DETAILS },
    product: 'pro_1',
    external_ref: 'crm-1',
    metadata: { seat: '4', customer_id: 'cus_bob' },
  }

  it('the body goes, and the event keeps what it does', () => {
    const given = delivery('payment.authorized', data)
    expect(redact(given, ERASED)).toEqual({
      event: { ...given.event, customer: nobody(given.event), externalRef: null, metadata: {} },
      body: null,
      removed: 'erased',
    })
  })

  it('the body goes where it names nobody, and belongs to what they bought', () => {
    const given = delivery('checkout.succeeded', { id: 'pay_1', customer_email: DETAILS.email }, 'cus_ada')
    expect(redact(given, ERASED)).toMatchObject({ body: null, event: { customer: { email: null } } })
    expect(redact({ ...given, owner: 'cus_bob' }, ERASED)).toBeNull()
    expect(redact({ ...given, owner: null }, ERASED)).toBeNull()
  })

  it('what it says about others stays', () => {
    const bob = { customer_id: 'cus_bob', email: 'bob@example.com' }
    const given = delivery('some.thing', { customer: data.customer, note: 1, name: 'Ada', others: [bob] })
    const redacted = redact(given, ERASED)
    expect(redacted).toMatchObject({ removed: 'redacted' })
    expect(left(redacted)).toEqual({
      customer: { object: 'customer', id: 'cus_ada' },
      note: 1,
      others: [bob],
    })
  })

  it('the event goes where its body is gone already, once', () => {
    const { event } = delivery('payment.authorized', data)
    const redacted = redact({ event, owner: null, body: null }, ERASED)
    expect(redacted).toMatchObject({ body: null, removed: null, event: { metadata: {} } })
    expect(redact({ event: redacted?.event ?? null, owner: null, body: null }, ERASED)).toBeNull()
  })

  it('a body that was altered and can’t be read any more goes as a whole', () => {
    const given = { ...delivery('payment.authorized', data), body: Buffer.from('{"customer": "cus_ad') }
    expect(redact(given, ERASED)).toMatchObject({ body: null, removed: 'erased' })
  })
})

describe('of a delivery about several people', () => {
  const payment = (n: number, customerId: string | null) => ({
    id: `pay_${n}`,
    payoutId: 'po_1',
    priceCents: '500',
    customerId,
    customerEmail: `${customerId}@example.com`,
    customerCommunityId: '1',
    customerMessengerId: '2',
    externalRef: 'crm',
  })
  const payouts = [{ id: 'po_1', payoutAmountCents: 900, currency: 'USD' }]
  const kept = (n: number, customerId: string) => ({
    id: `pay_${n}`,
    payoutId: 'po_1',
    priceCents: '500',
    customerId,
  })

  it('the documented fields of those who are erased go, and no others', () => {
    const given = delivery('PAYMENT_SETTLED', {
      payouts,
      payments: [payment(1, 'cus_ada'), payment(2, 'cus_bob'), payment(3, null), payment(4, 'cus_eve')],
    })
    const redacted = redact(given, ERASED)
    expect(redacted).toMatchObject({ removed: 'redacted', event: given.event })
    expect(left(redacted)).toEqual({
      payouts,
      payments: [kept(1, 'cus_ada'), payment(2, 'cus_bob'), payment(3, null), kept(4, 'cus_eve')],
    })
    expect(redact({ ...given, body: redacted?.body ?? null }, ERASED)).toBeNull()
  })

  it('nothing is left where all are erased, and all where none is', () => {
    const payments = [payment(1, 'cus_ada'), payment(2, 'cus_eve')]
    expect(redact(delivery('PAYMENT_SETTLED', { payouts, payments }), ERASED)).toMatchObject({ body: null })
    expect(redact(delivery('PAYMENT_SETTLED', { payouts, payments }), new Set(['cus_bob']))).toBeNull()
  })

  it.each([
    [
      'a field in either casing',
      { customer_id: 'cus_ada', customer_email: 'x', first_name: 'y' },
      { customer_id: 'cus_ada' },
    ],
    [
      'a customer object',
      { object: 'customer', id: 'cus_ada', phone: 'x' },
      { object: 'customer', id: 'cus_ada' },
    ],
    [
      'an object within',
      { customer: 'cus_ada', card: { name: 'x', last4: '1' } },
      { customer: 'cus_ada', card: { last4: '1' } },
    ],
    [
      'but not what another customer’s object within says',
      { customer: 'cus_ada', name: 'x', by: { customer: 'cus_bob', name: 'y' } },
      { customer: 'cus_ada', by: { customer: 'cus_bob', name: 'y' } },
    ],
  ])('they are found by %s', (_how, told, rest) => {
    const others = { customerId: 'cus_bob', email: 'b' }
    expect(left(redact(delivery('some.list', { items: [told, others] }), ERASED))).toEqual({
      items: [rest, others],
    })
  })
})

describe('of bytes that can’t be used', () => {
  const quarantined = (text: string) => redact({ event: null, owner: null, body: Buffer.from(text) }, ERASED)

  it.each(['{"customer": "cus_ada', '"id":"cus_ada"', 'cus_ada', '\u{0}cus_ada,'])('%j goes', (text) => {
    expect(quarantined(text)).toEqual({ event: null, body: null, removed: 'erased' })
  })

  it.each(['{"customer": "cus_ada2', 'xcus_ada', 'cus_ada-b', 'ada@example.com'])('%j stays', (text) => {
    expect(quarantined(text)).toBeNull()
  })
})

describe('of what was done by hand', () => {
  const act = (type: 'manual.granted' | 'manual.erased') => {
    const event = { ...byHand(type, 0), customerId: 'cus_ada', reason: 'Ada asked for it' }
    return { event, owner: null, body: Buffer.from(JSON.stringify(event)) }
  }

  it('the reason goes, and the body is the event that is left', () => {
    const given = act('manual.granted')
    const event = { ...given.event, reason: null }
    expect(redact(given, ERASED)).toEqual({
      event,
      body: Buffer.from(JSON.stringify(event)),
      removed: 'redacted',
    })
  })

  it('an erasure keeps its own', () => {
    expect(redact(act('manual.erased'), ERASED)).toBeNull()
  })
})

it('leaves the emails of others and none of anybody erased, and has nothing to do a second time', () => {
  const ids = fc.array(fc.constantFrom('cus_ada', 'cus_eve', 'cus_bob', null), { maxLength: 4 })
  fc.assert(
    fc.property(fc.constantFrom('cus_ada', null), ids, (customer, customerIds) => {
      const parties = customerIds.map((customerId, i) => ({
        customerId,
        customerEmail: `of-${i}@example.com`,
      }))
      const given = delivery('some.list', { customer, parties })
      const redacted = { ...given, ...redact(given, ERASED) }
      expect(redact(redacted, ERASED)).toBeNull()
      const named = [customer, ...customerIds].filter((id) => id !== null)
      const isErased = (id: string | null) => ERASED.has(id ?? customer ?? '')
      const isOthers = named.length === 0 || named.some((id) => !isErased(id))
      expect(String(redacted.body).match(/of-\d/g) ?? []).toEqual(
        customerIds.flatMap((id, i) => (isOthers && !isErased(id) ? [`of-${i}`] : [])),
      )
    }),
  )
})

function nobody(event: NormalizedEvent) {
  return withoutPerson(event).customer
}
