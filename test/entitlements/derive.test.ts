import { expect, it } from 'vitest'
import { derive, type Outcome } from '../../src/entitlements/derive.js'
import type { SourceKey } from '../../src/entitlements/model.js'
import { DOCUMENTED_POLICY, type Policy } from '../../src/entitlements/policy.js'
import { isNewerLink } from '../../src/entitlements/source-of.js'
import type { NormalizedEvent, OtherEvent } from '../../src/provider/event.js'
import { byHand, customerEvent, minute, once, pay, sub } from './events.js'

/* Random histories prove where payment and subscription events belong, and what waits: `agreement.test.ts`. */

const PAYMENT: SourceKey = { kind: 'payment', id: 'pay_1' }
const MANUAL: SourceKey = { kind: 'manual', id: 'cus_1/pro_a' }
const UNKNOWN: OtherEvent = {
  ...customerEvent({ type: 'customer.created' }),
  subject: 'other',
  type: 'payout.failed',
}
const BEGUN_GRANTS: Policy = {
  ...DOCUMENTED_POLICY,
  grantOn: { card: ['checkout.initiated'], crypto: [], unknown: [] },
}

const applied: Outcome = { disposition: 'applied', reason: null }
const ignored: Outcome = { disposition: 'ignored', reason: null }
const held = (reason: Extract<Outcome, { disposition: 'held' }>['reason']) =>
  ({ disposition: 'held', reason }) as const

it.each<[string, NormalizedEvent, SourceKey | null, Outcome, Policy?]>([
  ['a grant is applied', once('evt_1', 'payment.authorized', 0), PAYMENT, applied],
  ['what only informs of a payment is applied', once('evt_1', 'payment.settled', 0), PAYMENT, applied],
  [
    'a grant to nobody is held',
    once('evt_1', 'payment.authorized', 0, { customerId: null }),
    PAYMENT,
    held('customer_unknown'),
  ],
  [
    'a grant that names no source is held',
    pay('evt_1', 'payment.authorized', null, 0, { subscriptionId: null }),
    null,
    held('source_unknown'),
  ],
  [
    'what informs and names no source is ignored',
    pay('evt_1', 'payment.settled', null, 0, { subscriptionId: null }),
    null,
    ignored,
  ],
  ['a checkout that only began is ignored', once('evt_1', 'checkout.initiated', 0), PAYMENT, ignored],
  [
    'a checkout that only began is applied where the policy lets it grant',
    once('evt_1', 'checkout.initiated', 0),
    PAYMENT,
    applied,
    BEGUN_GRANTS,
  ],
  ['an act by hand is applied', byHand('manual.granted', 0), MANUAL, applied],
  ['a block belongs to no source', byHand('manual.blocked', 0), null, applied],
  [
    'a manual grant of no product belongs to no source',
    byHand('manual.granted', 0, { productId: null }),
    null,
    applied,
  ],
  ['a customer event is ignored', customerEvent({ type: 'customer.updated' }), null, ignored],
  ['an event about something else is ignored', UNKNOWN, null, ignored],
])('%s', (_what, event, source, outcome, policy = DOCUMENTED_POLICY) => {
  const { places, outcomes } = derive([{ seq: 1, event }], policy)
  expect([places.get(1), outcomes.get(1)]).toEqual([source, outcome])
})

it('what waits is saved as the same text, whatever order it arrived in', () => {
  const nobody = { customerId: null }
  const events = [
    once('evt_2', 'checkout.succeeded', 1, nobody),
    once('evt_3', 'payment.failed', 1, nobody),
    once('evt_1', 'payment.authorized', 2, nobody),
  ]
  const heldIn = (told: readonly NormalizedEvent[]) => {
    const { sources } = derive(
      told.map((event, seq) => ({ seq, event })),
      DOCUMENTED_POLICY,
    )
    return [...sources.values()].map(({ state }) => JSON.stringify(state.held))
  }
  const saved = ['{"evt_2":"customer_unknown","evt_3":"customer_unknown","evt_1":"customer_unknown"}']
  expect([heldIn(events), heldIn([...events].reverse())]).toEqual([saved, saved])
})

it('only what names a payment and a subscription links them, and what is known already counts', () => {
  const known = { paymentId: 'pay_1', subscriptionId: 'sub_9', linkedAt: minute(5), linkedBy: 'evt_9' }
  const linkBy = (event: NormalizedEvent) =>
    derive([{ seq: 1, event }], DOCUMENTED_POLICY, [known]).links.get('pay_1')?.linkedBy
  expect(linkBy(pay('evt_1', 'payment.settled', 'pay_1', 6))).toBe('evt_1')
  expect(linkBy(sub('evt_1', 'subscription.updated', 6, { paymentId: 'pay_1' }))).toBe('evt_1')
  expect(linkBy(pay('evt_1', 'payment.settled', 'pay_1', 4))).toBe('evt_9')
  for (const other of [once('evt_1', 'payment.settled', 6), byHand('manual.granted', 6)])
    expect(linkBy(other)).toBe('evt_9')
})

it('a link gives way to what its own event is read to say now', () => {
  const link = { paymentId: 'pay_1', subscriptionId: 'sub_1', linkedAt: minute(5), linkedBy: 'evt_5' }
  expect(isNewerLink({ ...link, subscriptionId: 'sub_2' }, link)).toBe(true)
  expect(isNewerLink(link, link)).toBe(false)
})
