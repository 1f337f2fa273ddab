import { describe, expect, it } from 'vitest'
import { DOCUMENTED_POLICY } from '../../src/entitlements/policy.js'
import { endpoint, load, problems, warnings } from './config-file.js'

const endpoints = { v3: endpoint('live', 'whsec_0123456789abcdef') }

function policyOf(policy: unknown) {
  return load({ endpoints, policy }).config.policy
}

function problemsOf(policy: unknown): string[] {
  return problems({ endpoints, policy })
}

describe('the policy', () => {
  it('takes the documented row or switch for each that is left out', () => {
    expect(policyOf({ grantOn: { crypto: ['payment.completed'] }, canceled: 'period_end' })).toEqual({
      ...DOCUMENTED_POLICY,
      grantOn: { ...DOCUMENTED_POLICY.grantOn, crypto: ['payment.completed'] },
      canceled: 'period_end',
    })
  })

  it.each([
    ['90s', 90_000],
    ['15m', 900_000],
    ['72h', 259_200_000],
    ['45d', 3_888_000_000],
  ])('reads a lapse after %s', (lapseAfter, milliseconds) => {
    expect(policyOf({ lapseAfter }).lapseAfter).toBe(milliseconds)
  })

  it.each(['', '0d', '45', '45 d', '-1d', '1.5h', '45D', '1w', '9999999d', 45])(
    'refuses a lapse after %j',
    (lapseAfter) => {
      expect(problemsOf({ lapseAfter })).toEqual([expect.stringMatching(/^policy\.lapseAfter: must be /)])
    },
  )

  it.each([
    ['an unknown type', 'payment.paid', /must be a payment or checkout event type: payment\.authorized, /],
    ['the legacy name of a type', 'PAYMENT_SUCCESS', /must be a payment or checkout event type/],
    ['a subscription event', 'subscription.created', /they grant nothing$/],
    ['an abandoned checkout', 'checkout.canceled', /will never be paid: it grants nothing$/],
    ['a voided authorization', 'payment.canceled', /will never be paid: it grants nothing$/],
    ['what is no text', 5, /must be one of payment\.authorized, /],
  ])('refuses to grant on %s', (_, type, message) => {
    expect(problemsOf({ grantOn: { card: ['payment.authorized', type] } })).toEqual([
      expect.stringMatching(/^policy\.grantOn\.card\[1\]: /),
    ])
    expect(problemsOf({ grantOn: { card: [type] } })).toEqual([expect.stringMatching(message)])
  })

  it('takes back on subscription events and terminal ones, and on nothing unknown', () => {
    const card = ['subscription.past_due', 'checkout.canceled', 'payment.chargeback']
    expect(policyOf({ revokeOn: { card } }).revokeOn.card).toEqual(card)
    expect(problemsOf({ revokeOn: { card: ['customer.deleted'] } })).toEqual([
      expect.stringMatching(/^policy\.revokeOn\.card\[0\]: must be an event type: payment\.authorized, /),
    ])
  })

  it('refuses a type that both grants and takes back in one row', () => {
    const policy = { grantOn: { card: ['payment.chargeback'] }, revokeOn: { card: ['payment.chargeback'] } }
    expect(problemsOf(policy)).toEqual([
      'policy.grantOn.card[0]: payment.chargeback both grants (grantOn.card) and takes back (revokeOn.card)',
    ])
  })

  it('refuses one that does so against a row left out', () => {
    expect(problemsOf({ grantOn: { card: ['payment.failed'] } })).toEqual([
      'policy.grantOn.card[0]: payment.failed both grants (grantOn.card) and takes back (revokeOn.card)',
    ])
    expect(problemsOf({ revokeOn: { crypto: ['payment.succeeded'] } })).toEqual([
      'policy.revokeOn.crypto: payment.succeeded both grants (grantOn.crypto) and takes back (revokeOn.crypto)',
    ])
  })

  it('refuses one that does so beside one that there is not', () => {
    expect(problemsOf({ grantOn: { card: ['nonsense', 'payment.failed'] } })).toEqual([
      expect.stringMatching(/^policy\.grantOn\.card\[0\]: must be a payment or checkout event type/),
      'policy.grantOn.card[1]: payment.failed both grants (grantOn.card) and takes back (revokeOn.card)',
    ])
  })

  it('lets a type grant on one rail and take back on another', () => {
    const policy = { grantOn: { crypto: ['payment.settled'] }, revokeOn: { card: ['payment.settled'] } }
    expect(policyOf(policy).grantOn.crypto).toEqual(['payment.settled'])
  })

  it.each([
    [{ failedRenewal: 'drop' }, 'policy.failedRenewal: must be one of keep, revoke'],
    [{ canceled: true }, 'policy.canceled: must be one of effective, period_end'],
    [{ completed: 'never' }, 'policy.completed: must be one of period_end, keep'],
    [{ paidCycle: '' }, 'policy.paidCycle: must be one of grants, informs'],
    [{ grantOn: { paypal: [] } }, 'policy.grantOn.paypal: is not a known key'],
    [{ lapse: '45d' }, 'policy.lapse: is not a known key'],
  ])('refuses %j', (policy, problem) => {
    expect(problemsOf(policy)).toEqual([problem])
  })

  it('warns of an empty grant row', () => {
    expect(warnings({ endpoints, policy: { grantOn: { unknown: [] } } })).toEqual([
      'policy.grantOn.unknown: is empty: no such payment gives access',
    ])
  })

  it('warns of a lapse that dunning may outlast', () => {
    expect(warnings({ endpoints, policy: { lapseAfter: '29d' } })).toEqual([
      'policy.lapseAfter: is under 30 days, which dunning may last',
    ])
    expect(warnings({ endpoints, policy: { lapseAfter: '30d' } })).toEqual([])
  })
})
