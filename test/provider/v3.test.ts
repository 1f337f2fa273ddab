import { describe, expect, it } from 'vitest'
import { eventOf } from './wire.js'

describe('a checkout', () => {
  const checkout = (data: object) => eventOf('checkout.succeeded', data)

  it.each([
    ["its own id, if it is a payment's", { id: 'pay_1', payment: 'pay_2' }, 'pay_1'],
    ['the payment as text', { id: 'cs_1', payment: 'pay_1' }, 'pay_1'],
    ['the payment as an object', { id: 'cs_1', payment: { id: 'pay_1' } }, 'pay_1'],
    ['an id of any form', { id: 'cs_1', payment_id: '4711' }, '4711'],
    ["nothing, if its own id is a session's", { id: 'cs_1' }, null],
  ])('is about the payment that is named by %s', (_, data, paymentId) => {
    expect(checkout(data)).toMatchObject({ paymentId })
  })

  const payment = {
    id: 'pay_1',
    method: 'CRYPTO',
    customer: { id: 'cus_1', email: 'ada@example.com' },
    product_id: 'pro_1',
    subscription: { id: 'sub_1' },
    external_ref: 'user_7',
    metadata: { plan: 'gold' },
  }

  it('shows what the payment within it shows', () => {
    expect(checkout({ id: 'cs_1', payment })).toMatchObject({
      paymentId: 'pay_1',
      customerId: 'cus_1',
      customer: { email: 'ada@example.com' },
      productId: 'pro_1',
      subscriptionId: 'sub_1',
      railProof: { rail: 'crypto', strength: 3 },
      externalRef: 'user_7',
      metadata: { plan: 'gold' },
    })
  })

  it('counts before the payment within it', () => {
    const own = {
      customer_id: 'cus_2',
      product: 'pro_2',
      subscription_id: 'sub_2',
      method: 'CARD',
      externalRef: 'user_8',
    }
    expect(checkout({ id: 'cs_1', payment, ...own, metadata: { plan: 'silver' } })).toMatchObject({
      customerId: 'cus_2',
      productId: 'pro_2',
      subscriptionId: 'sub_2',
      railProof: { rail: 'card', strength: 3 },
      externalRef: 'user_8',
      metadata: { plan: 'silver' },
    })
  })
})

describe('a payment event', () => {
  it.each([
    [{ id: '4711' }, '4711'],
    [{ id: 'pay_1', payment: 'pay_2' }, 'pay_1'],
    [{ payment: 'pay_2' }, 'pay_2'],
    [{ payment: { id: 'pay_2' } }, 'pay_2'],
    [{ paymentId: 'pay_2' }, 'pay_2'],
    [{}, null],
  ])('with %j is about %s', (data, paymentId) => {
    expect(eventOf('payment.succeeded', data)).toMatchObject({ paymentId })
  })

  it('has no end of a paid period: its expires_at is a deadline for paying', () => {
    expect(
      eventOf('payment.succeeded', { id: 'pay_1', expires_at: '2026-04-01T00:00:00Z' }),
    ).not.toHaveProperty('expiresAt')
  })
})

describe('a subscription event', () => {
  const subscription = (data: object) => eventOf('subscription.renewed', data)

  it.each([
    [{ id: 'sub_1', subscription: 'sub_2' }, 'sub_1'],
    [{ subscription: { id: 'sub_2' } }, 'sub_2'],
    [{ subscription_id: 'sub_2' }, 'sub_2'],
    [{}, null],
  ])('with %j is about %s', (data, subscriptionId) => {
    expect(subscription(data)).toMatchObject({ subscriptionId })
  })

  it.each([
    'payment',
    'payment_id',
    'paymentId',
    'last_payment',
    'lastPayment',
    'last_payment_id',
    'lastPaymentId',
  ])('may name its payment by %s', (field) => {
    expect(subscription({ id: 'sub_1', [field]: 'pay_1' })).toMatchObject({ paymentId: 'pay_1' })
    expect(subscription({ id: 'sub_1', [field]: { id: 'pay_1' } })).toMatchObject({ paymentId: 'pay_1' })
  })

  const END = '2026-04-01T00:00:00Z'
  it.each([
    [{ expires_at: END }, Date.parse(END)],
    [{ expiresAt: END }, Date.parse(END)],
    [{ current_cycle_due_at: END }, Date.parse(END)],
    [{ currentCycleDueAt: END, expires_at: null }, Date.parse(END)],
    [{ expires_at: END, current_cycle_due_at: '2026-05-01T00:00:00Z' }, Date.parse(END)],
    [{ expires_at: 'soon', current_cycle_due_at: END }, Date.parse(END)],
    [{ expires_at: 1775001600 }, null],
    [{ expires_at: [END] }, null],
    [{}, null],
  ])('with %j is paid until %s', (data, expiresAt) => {
    expect(subscription(data)).toMatchObject({ expiresAt })
  })

  it.each([
    [
      { current_cycle: 1, total_cycles: 3 },
      { current: 1, total: 3 },
    ],
    [
      { currentCycle: 1, totalCycles: null },
      { current: 1, total: null },
    ],
    [
      { current_cycle: null, total_cycles: null },
      { current: null, total: null },
    ],
    [{ current_cycle: 1 }, null],
    [{ total_cycles: null }, null],
    [{ current_cycle: 1, total_cycles: 'three' }, null],
    [{ current_cycle: 1.5, total_cycles: 3 }, null],
  ])('with %j counts its cycles as %j', (data, cycles) => {
    expect(subscription(data)).toMatchObject({ cycles })
  })

  it.each([
    [{ cancel_at_period_end: true }, true],
    [{ cancelAtPeriodEnd: false }, false],
    [{ cancel_at_period_end: 'true' }, null],
    [{}, null],
  ])('with %j says of ending with its period: %s', (data, cancelAtPeriodEnd) => {
    expect(subscription(data)).toMatchObject({ cancelAtPeriodEnd })
  })

  it('tells the status in lower case', () => {
    expect(subscription({ status: 'PAST_DUE' })).toMatchObject({ status: 'past_due' })
  })
})
