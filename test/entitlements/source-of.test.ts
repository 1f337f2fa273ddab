import { describe, expect, it } from 'vitest'
import { isNewerLink, linkOf, sourceOf } from '../../src/entitlements/source-of.js'
import type { NormalizedEvent, OtherEvent } from '../../src/provider/event.js'
import { customerEvent, minute, paymentEvent, subscriptionEvent } from './events.js'
import { byHand } from './manual-events.js'

const PAYOUT: OtherEvent = {
  ...customerEvent({ type: 'customer.created' }),
  subject: 'other',
  type: 'payout.failed',
}
const payment = paymentEvent({ type: 'payment.succeeded', paymentId: 'pay_1' })

describe('an event belongs to', () => {
  const linked = (paymentId: string) => (paymentId === 'pay_linked' ? 'sub_7' : undefined)

  it.each<readonly [string, NormalizedEvent, object | null]>([
    ['its payment', payment, { kind: 'payment', id: 'pay_1' }],
    [
      'the subscription that its payment is linked to, whatever it names itself',
      { ...payment, paymentId: 'pay_linked', subscriptionId: 'sub_2' },
      { kind: 'subscription', id: 'sub_7' },
    ],
    [
      'the subscription that it names, if it names no payment',
      { ...payment, paymentId: null, subscriptionId: 'sub_2' },
      { kind: 'subscription', id: 'sub_2' },
    ],
    ['nothing, if it names neither', { ...payment, paymentId: null }, null],
    [
      'its subscription',
      subscriptionEvent({ type: 'subscription.updated' }),
      { kind: 'subscription', id: 'sub_1' },
    ],
    ['what was granted by hand', byHand('manual.revoked', 0), { kind: 'manual', id: 'cus_1/pro_a' }],
    ['nothing, as a block', byHand('manual.blocked', 0), null],
    ['nothing, as a grant by hand of no product', byHand('manual.granted', 0, { productId: null }), null],
    ['nothing, as a word about a customer', customerEvent({ type: 'customer.updated' }), null],
    ['nothing, as a word about a payout', PAYOUT, null],
  ])('%s', (_, event, source) => {
    expect(sourceOf(event, linked)).toEqual(source)
  })
})

describe('a link of a payment to a subscription', () => {
  it('is made by whatever names both', () => {
    const link = { paymentId: 'pay_1', subscriptionId: 'sub_1', linkedAt: minute(5) }
    const event = subscriptionEvent({
      type: 'subscription.created',
      paymentId: 'pay_1',
      createdAt: minute(5),
    })
    expect(linkOf(event)).toEqual({ ...link, linkedBy: event.id })
    const paid = { ...payment, subscriptionId: 'sub_1', createdAt: minute(5) }
    expect(linkOf(paid)).toEqual({ ...link, linkedBy: paid.id })
  })

  it.each<readonly [string, NormalizedEvent]>([
    ['a payment alone', payment],
    ['a subscription alone', { ...payment, paymentId: null, subscriptionId: 'sub_1' }],
    ['a customer', customerEvent({ type: 'customer.updated' })],
    ['a grant by hand', byHand('manual.granted', 0)],
  ])('is not made by what names %s', (_, event) => {
    expect(linkOf(event)).toBeNull()
  })

  it('counts if it is the newest, by its id among those of one instant', () => {
    const link = { paymentId: 'pay_1', subscriptionId: 'sub_1', linkedAt: minute(5), linkedBy: 'evt_5' }
    expect(isNewerLink(link, undefined)).toBe(true)
    expect(isNewerLink({ ...link, linkedAt: minute(6), linkedBy: 'evt_1' }, link)).toBe(true)
    expect(isNewerLink({ ...link, linkedAt: minute(4), linkedBy: 'evt_9' }, link)).toBe(false)
    expect(isNewerLink({ ...link, linkedBy: 'evt_6' }, link)).toBe(true)
    expect(isNewerLink({ ...link, linkedBy: 'evt_4' }, link)).toBe(false)
    expect(isNewerLink(link, link)).toBe(false)
  })
})
