import { describe, expect, it } from 'vitest'
import { chooseIds, numbered } from '../../src/cli/trigger.js'

describe('what a sample is about', () => {
  it('is the test customer, product and payment if nothing is said', () => {
    expect(chooseIds('payment.succeeded', {})).toEqual({
      customerId: 'cus_test',
      productId: 'pro_test',
      paymentId: expect.stringMatching(/^pay_[0-9a-f]{12}$/),
      subscriptionId: null,
    })
  })

  it.each([
    'CHECKOUT_SUCCESS',
    'PAYMENT_REFUNDED',
    'PARTIAL_REFUNDED',
    'checkout.canceled',
    'payment.chargeback',
  ])('is for %s the same payment as for any other payment event', (type) => {
    expect(chooseIds(type, {}).paymentId).toBe(chooseIds('payment.authorized', {}).paymentId)
  })

  it('is for subscription events of both generations a subscription of the same customer, and its payment', () => {
    const ids = chooseIds('subscription.created', { customer: 'cus_1', product: 'pro_1' })
    expect(ids.subscriptionId).toMatch(/^sub_[0-9a-f]{12}$/)
    expect(ids.paymentId).toBe(
      chooseIds('payment.authorized', { customer: 'cus_1', product: 'pro_1' }).paymentId,
    )
    expect(chooseIds('SUBSCRIPTION_EXPIRED', { customer: 'cus_1', product: 'pro_1' })).toEqual(ids)
  })

  it('leaves customer and product to the daemon when the payment or subscription is named', () => {
    expect(chooseIds('payment.refunded', { payment: 'pay_1' })).toEqual({
      customerId: null,
      productId: null,
      paymentId: 'pay_1',
      subscriptionId: null,
    })
    expect(chooseIds('subscription.expired', { subscription: 'sub_1' })).toEqual({
      customerId: null,
      productId: null,
      paymentId: null,
      subscriptionId: 'sub_1',
    })
  })

  it('keeps what is said beside a named payment', () => {
    expect(chooseIds('payment.authorized', { payment: 'pay_1', customer: 'cus_1' })).toMatchObject({
      customerId: 'cus_1',
      productId: null,
      paymentId: 'pay_1',
    })
  })

  it('gives a named subscription a payment of its own', () => {
    const { paymentId, subscriptionId } = chooseIds('payment.authorized', { subscription: 'sub_1' })
    expect(subscriptionId).toBe('sub_1')
    expect(paymentId).toMatch(/^pay_/)
    expect(paymentId).not.toBe(chooseIds('payment.authorized', {}).paymentId)
  })

  it.each(['customer.created', 'payout.failed', 'payment_method.attached'])(
    'is no payment for %s',
    (type) => {
      expect(chooseIds(type, {})).toMatchObject({ paymentId: null, subscriptionId: null })
    },
  )

  it('is numbered in a series, and only there', () => {
    const ids = chooseIds('payment.authorized', { payment: 'pay_1' })
    expect(numbered(ids, 0, 1).paymentId).toBe('pay_1')
    expect([0, 1].map((index) => numbered(ids, index, 2).paymentId)).toEqual(['pay_1_1', 'pay_1_2'])
  })
})
