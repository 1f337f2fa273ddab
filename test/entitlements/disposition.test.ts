import { expect, it } from 'vitest'
import { outcomeOf } from '../../src/entitlements/derive.js'
import type { SourceKey } from '../../src/entitlements/model.js'
import { DOCUMENTED_POLICY, type Policy } from '../../src/entitlements/policy.js'
import type { NormalizedEvent, OtherEvent } from '../../src/provider/event.js'
import { customerEvent, paymentEvent, subscriptionEvent } from './events.js'
import { byHand } from './manual-events.js'

const SOURCE: SourceKey = { kind: 'payment', id: 'pay_1' }
const PAYOUT: OtherEvent = {
  ...customerEvent({ type: 'customer.created' }),
  subject: 'other',
  type: 'payout.failed',
}
const APPLIED = { disposition: 'applied', reason: null }
const IGNORED = { disposition: 'ignored', reason: null }

const paid = paymentEvent({ type: 'payment.authorized', paymentId: 'pay_1' })
const begun = paymentEvent({ type: 'checkout.initiated', paymentId: 'pay_1' })
const BEGUN_GRANTS: Policy = {
  ...DOCUMENTED_POLICY,
  grantOn: { ...DOCUMENTED_POLICY.grantOn, card: ['checkout.initiated'] },
}

it.each<readonly [string, NormalizedEvent, object]>([
  ['a grant is applied', paid, APPLIED],
  ['what only informs of a payment is applied', { ...paid, type: 'payment.settled' }, APPLIED],
  ['a subscription event is applied', subscriptionEvent({ type: 'subscription.past_due' }), APPLIED],
  ['an act by hand is applied', byHand('manual.granted', 0), APPLIED],
  ['a checkout that only began is ignored', begun, IGNORED],
  ['a customer event is ignored', customerEvent({ type: 'customer.updated' }), IGNORED],
  ['an event about nobody in particular is ignored', PAYOUT, IGNORED],
])('%s', (_, event, outcome) => {
  expect(outcomeOf(event, SOURCE, undefined, DOCUMENTED_POLICY)).toEqual(outcome)
})

it('a checkout that only began is applied where the policy lets it grant', () => {
  expect(outcomeOf(begun, SOURCE, undefined, BEGUN_GRANTS)).toEqual(APPLIED)
})

it('what waits in its source is held, and says for what', () => {
  expect(outcomeOf(paid, SOURCE, 'customer_unknown', DOCUMENTED_POLICY)).toEqual({
    disposition: 'held',
    reason: 'customer_unknown',
  })
})

it('of what names no source only a grant or a take-back is held', () => {
  const nameless = { paymentId: null, subscriptionId: null }
  const held = { disposition: 'held', reason: 'source_unknown' }
  expect(outcomeOf({ ...paid, ...nameless }, null, undefined, DOCUMENTED_POLICY)).toEqual(held)
  const settled = { ...paid, ...nameless, type: 'payment.settled' } as const
  expect(outcomeOf(settled, null, undefined, DOCUMENTED_POLICY)).toEqual(IGNORED)
})
