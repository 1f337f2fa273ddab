import { describe, expect, it } from 'vitest'
import {
  day,
  type Json,
  MONTHLY,
  paymentsOf,
  type Service,
  startHeard,
  startService,
  subscribe,
  subscriptionOf,
} from './service.js'

const setCard = (service: Service, customerId: string, outcome: string): Promise<Json> =>
  service.data(`POST /sandbox/customers/${customerId}/card`, { outcome })

/** What comes with a paid renewal by card. */
const RENEWED = ['payment.authorized', 'payment.succeeded', 'payment.completed', 'subscription.renewed']

describe('a subscription by card', () => {
  it('begins with its first payment, and saves the card', async () => {
    const service = await startHeard(['v3', 'v2'])
    const { id, customerId, productId } = await subscribe(service)
    expect(await subscriptionOf(service, id)).toMatchObject({
      ...{
        status: 'ACTIVE',
        currentCycle: 1,
        totalCycles: null,
        renewalAttempt: 0,
        cancelAtPeriodEnd: false,
      },
      currentCycleDueAt: expect.stringMatching(/^2026-01-31T00:00:00/),
    })
    await service.advance('1s')
    expect(service.receiver.types()).toEqual([
      ...['customer.created', 'CHECKOUT_INITIATED', 'payment.authorized', 'CHECKOUT_SUCCESS'],
      ...['payment.succeeded', 'PAYMENT_SUCCESS', 'payment.completed', 'payment_method.attached'],
      ...['subscription.created', 'SUBSCRIPTION_CREATED'],
    ])
    const [v3, v2] = service.receiver.received.slice(-2)
    expect(v3?.event.data).toEqual({
      ...{
        object: 'subscription',
        id,
        status: 'active',
        current_cycle: 1,
        total_cycles: null,
        cancel_at_period_end: false,
      },
      expires_at: expect.stringMatching(/^2026-01-31T00:00:00/),
      organization_id: 'org_sandbox',
      customer: { object: 'customer', id: customerId, email: 'ada@example.com' },
      product: expect.objectContaining({ object: 'product', id: productId }),
    })
    expect(v2?.event).toEqual({
      ...{ id: expect.stringMatching(/^evt_/), type: 'SUBSCRIPTION_CREATED', createdAt: v3?.event.createdAt },
      data: {
        subscription: { id, status: 'ACTIVE', productId, expiresAt: v3?.event.data.expires_at },
        lastPayment: {
          id: expect.any(String),
          status: 'PAYMENT_SUCCESS',
          priceCents: '1900',
          currency: 'EUR',
          createdAt: expect.any(String),
        },
        customer: {
          id: customerId,
          email: 'ada@example.com',
          communityId: null,
          messengerId: null,
          communityUsername: null,
          messengerUsername: null,
        },
        context: { externalRef: null, metadata: null },
      },
    })
    expect(v2?.event.id).not.toBe(v3?.event.id)
  })

  it('whose first payment is declined tells nothing of itself, and can still be paid', async () => {
    const service = await startHeard()
    const { id: productId } = await service.data('POST /v3/products', MONTHLY)
    const body = {
      productId,
      customerEmail: 'a@example.com',
      card: { tokenizedInstrument: 'tok_hard_decline' },
    }
    const { status, body: refused } = await service.call('POST /v3/subscriptions', body)
    expect([status, refused.error, refused.data.declineCode]).toEqual([
      422,
      'FIRST_PAYMENT_DECLINED',
      'stolen_card',
    ])
    const { items } = await service.data('GET /v3/subscriptions')
    expect(items).toMatchObject([{ status: 'INCOMPLETE', currentCycle: 0 }])
    await service.advance('1s')
    expect(service.receiver.types()).toEqual(['customer.created', 'payment.failed'])
    await service.pay(refused.data.paymentId)
    expect(await subscriptionOf(service, items[0].id)).toMatchObject({ status: 'ACTIVE' })
  })

  it('shows that its first payment waits for the bank', async () => {
    const service = await startService()
    const { id, payment } = await subscribe(service, { card: { tokenizedInstrument: 'tok_3ds' } })
    expect(await subscriptionOf(service, id)).toMatchObject({ status: 'PENDING_3DS' })
    await service.pay(payment.id, { outcome: '3ds_failed' })
    expect(await subscriptionOf(service, id)).toMatchObject({ status: 'INCOMPLETE' })
    await service.pay(payment.id)
    expect(await subscriptionOf(service, id)).toMatchObject({ status: 'ACTIVE' })
  })

  it('whose first payment is never paid expires without a word', async () => {
    const service = await startHeard()
    const { id } = await subscribe(service, { card: undefined })
    await service.advance('1h')
    expect(await subscriptionOf(service, id)).toMatchObject({ status: 'EXPIRED' })
    expect(service.receiver.types()).toEqual(['customer.created'])
  })

  it('renews itself at the end of each cycle, at the price of that day', async () => {
    const service = await startHeard(['v3', 'v2'])
    const { id, productId } = await subscribe(service)
    await service.data(`PATCH /v3/products/${productId}`, { priceCents: '2100' })
    service.receiver.take()
    await service.advance('61d')
    expect(await subscriptionOf(service, id)).toMatchObject({
      status: 'ACTIVE',
      currentCycle: 3,
      currentCycleDueAt: expect.stringMatching(/^2026-04-01T00:00:00/),
    })
    expect((await paymentsOf(service, id)).map(({ priceCents }) => priceCents)).toEqual([
      '2100',
      '2100',
      '1900',
    ])
    const renewal = [
      'payment.authorized',
      'payment.succeeded',
      'PAYMENT_SUCCESS',
      'payment.completed',
      'subscription.renewed',
      'SUBSCRIPTION_RENEWED',
    ]
    expect(service.receiver.types()).toEqual([...renewal, ...renewal])
  })

  it('at a price of its own is charged in the currency that came with the price, each cycle', async () => {
    const service = await startService()
    const { id } = await subscribe(service, {
      product: { priceCents: null, isCustomPrice: true, currency: 'USD' },
      priceCents: '700',
      currency: 'EUR',
    })
    await service.advance('31d')
    const charged = (await paymentsOf(service, id)).map((one) => `${one.priceCents} ${one.currency}`)
    expect(charged).toEqual(['700 EUR', '700 EUR'])
  })

  it('ends after its fixed number of cycles', async () => {
    const service = await startHeard()
    const { id } = await subscribe(service, { totalCycles: 2 })
    await service.advance('59d')
    expect(await subscriptionOf(service, id)).toMatchObject({
      status: 'ACTIVE',
      currentCycle: 2,
      totalCycles: 2,
    })
    await service.advance('2d')
    expect(await subscriptionOf(service, id)).toMatchObject({ status: 'EXPIRED', currentCycleDueAt: null })
    expect(service.receiver.types().slice(-2)).toEqual(['subscription.renewed', 'subscription.expired'])
  })
})

describe('a cancellation', () => {
  it('now ends the subscription at once, for both generations', async () => {
    const service = await startHeard(['v3', 'v2'])
    const { id } = await subscribe(service)
    await service.advance('1d')
    service.receiver.take()
    expect(await service.data(`POST /v3/subscriptions/${id}/cancel`)).toMatchObject({ status: 'CANCELED' })
    await service.advance('60d')
    expect(service.receiver.types()).toEqual(['subscription.canceled', 'SUBSCRIPTION_EXPIRED'])
    expect(service.receiver.received[0]?.event.data).toMatchObject({
      status: 'canceled',
      cancel_at_period_end: false,
    })
    expect(await service.refusal(`POST /v3/subscriptions/${id}/cancel`)).toBe(
      '409 SUBSCRIPTION_NOT_CANCELABLE',
    )
    expect(await service.refusal(`DELETE /api/subscription/${id}`)).toBe('409 SUBSCRIPTION_NOT_CANCELABLE')
  })

  it('at the end of the period is told when that is reached', async () => {
    const service = await startHeard()
    const { id } = await subscribe(service)
    const body = { atPeriodEnd: true }
    expect(await service.data(`POST /v3/subscriptions/${id}/cancel`, body)).toMatchObject({
      status: 'ACTIVE',
      cancelAtPeriodEnd: true,
    })
    await service.advance('29d')
    expect(service.receiver.types()).not.toContain('subscription.canceled')
    await service.advance('2d')
    expect(await subscriptionOf(service, id)).toMatchObject({ status: 'CANCELED', cancelAtPeriodEnd: true })
    expect(service.receiver.received.at(-1)).toMatchObject({
      type: 'subscription.canceled',
      event: {
        createdAt: expect.stringMatching(/^2026-01-31T00:00:00/),
        data: { cancel_at_period_end: true },
      },
    })
  })
})

describe('dunning', () => {
  it('charges a card that is declined softly 8 times within 30 days, and then ends the subscription', async () => {
    const service = await startHeard(['v3', 'v2'])
    const { id, customerId } = await subscribe(service)
    await setCard(service, customerId, 'soft_decline')
    service.receiver.take()
    await service.advance('31d')
    expect(service.receiver.types()).toEqual([
      ...['payment.failed', 'PAYMENT_FAILED', 'subscription.past_due', 'SUBSCRIPTION_PAST_DUE'],
      ...['payment.failed', 'PAYMENT_FAILED'],
    ])
    expect(await subscriptionOf(service, id)).toMatchObject({
      ...{ status: 'PAST_DUE', renewalAttempt: 2, lastDeclineCategory: 'SOFT', currentCycle: 1 },
      nextRenewalAttemptAt: expect.stringMatching(/^2026-02-03T00:00:00/),
    })
    await service.advance('28d')
    expect(await subscriptionOf(service, id)).toMatchObject({ status: 'PAST_DUE', renewalAttempt: 7 })
    await service.advance('2d')
    expect(await subscriptionOf(service, id)).toMatchObject({
      status: 'EXPIRED',
      renewalAttempt: 8,
      nextRenewalAttemptAt: null,
    })
    const types = service.receiver.types()
    expect(types.filter((type) => type === 'payment.failed')).toHaveLength(8)
    expect(types.filter((type) => type === 'subscription.past_due')).toHaveLength(1)
    expect(types.slice(-2)).toEqual(['subscription.expired', 'SUBSCRIPTION_EXPIRED'])
    expect(service.receiver.received.at(-2)?.event.createdAt).toMatch(/^2026-03-02T00:00:00/)
  })

  it('ends with the charge that goes through, and the anchor stays', async () => {
    const service = await startHeard()
    const { id, customerId } = await subscribe(service)
    await setCard(service, customerId, 'technical_failure')
    await service.advance('34d')
    await setCard(service, customerId, 'success')
    service.receiver.take()
    await service.advance('3d')
    expect(service.receiver.types()).toEqual(RENEWED)
    expect(await subscriptionOf(service, id)).toMatchObject({
      ...{
        status: 'ACTIVE',
        currentCycle: 2,
        renewalAttempt: 0,
        nextRenewalAttemptAt: null,
        lastDeclineCategory: null,
      },
      currentCycleDueAt: expect.stringMatching(/^2026-03-02T00:00:00/),
    })
    const [renewal] = await paymentsOf(service, id)
    expect(renewal.statusTimeline.map(({ status }: Json) => status)).toEqual([
      ...['PENDING', 'FAILED', 'FAILED', 'FAILED', 'AUTHORIZED', 'COMPLETED'],
    ])
  })

  it.each(['a hard decline', 'a card that was revoked'])('does not begin after %s', async (reason) => {
    const service = await startHeard()
    const { id, customerId } = await subscribe(service)
    if (reason === 'a hard decline') await setCard(service, customerId, 'hard_decline')
    else {
      const { items } = await service.data(`GET /v3/customers/${customerId}/payment-methods`)
      await service.call(`DELETE /v3/customers/${customerId}/payment-methods/${items[0].id}`)
    }
    service.receiver.take()
    await service.advance('30d')
    await service.advance('1d')
    expect(service.receiver.types().filter((type) => type !== 'payment_method.detached')).toEqual([
      'payment.failed',
      'subscription.expired',
    ])
    expect(await subscriptionOf(service, id)).toMatchObject({
      status: 'EXPIRED',
      lastDeclineCategory: 'HARD',
    })
  })

  it('is over when the buyer pays by hand', async () => {
    const service = await startService()
    const { id, customerId } = await subscribe(service)
    await setCard(service, customerId, 'soft_decline')
    await service.advance('32d')
    const [renewal] = await paymentsOf(service, id)
    expect(await service.refusal(`POST /api/payment/${renewal.id}/cancel`)).toBe('409 PAYMENT_NOT_CANCELABLE')
    await service.pay(renewal.id)
    expect(await subscriptionOf(service, id)).toMatchObject({ status: 'ACTIVE', currentCycle: 2 })
    await service.advance('20d')
    expect(await paymentsOf(service, id)).toHaveLength(2)
  })

  it('that is canceled is over at once', async () => {
    const service = await startHeard()
    const { id, customerId } = await subscribe(service)
    await setCard(service, customerId, 'soft_decline')
    await service.advance('32d')
    service.receiver.take()
    await service.data(`POST /v3/subscriptions/${id}/cancel`, { atPeriodEnd: true })
    await service.advance('40d')
    expect(service.receiver.types()).toEqual(['subscription.canceled'])
  })

  it('starts a short cycle with its payment where that comes after the next anchor', async () => {
    const service = await startService()
    const { id, customerId } = await subscribe(service, { product: { frequencyInDays: 2 } })
    await setCard(service, customerId, 'soft_decline')
    await service.advance('7d')
    await setCard(service, customerId, 'success')
    await service.advance('1d')
    expect(await subscriptionOf(service, id)).toMatchObject({
      currentCycle: 2,
      currentCycleDueAt: expect.stringMatching(/^2026-01-11/),
    })
  })
})

describe('a subscription by crypto', () => {
  const crypto = { chainId: 101, assetId: 'SOL' }
  const begin = async (service: Service) => {
    const begun = await subscribe(service, { card: undefined, crypto })
    await service.pay(begun.payment.id)
    return begun
  }

  it('waits for each deposit in a payment of its own, and rolls forward', async () => {
    const service = await startHeard(['v3', 'v2'])
    const { id } = await begin(service)
    service.receiver.take()
    await service.advance('32d')
    expect(service.receiver.types()).toEqual([
      'CHECKOUT_INITIATED',
      'subscription.past_due',
      'SUBSCRIPTION_PAST_DUE',
    ])
    const [renewal] = await paymentsOf(service, id)
    expect(renewal).toMatchObject({
      status: 'PENDING',
      asset: { symbol: 'SOL', chainId: 101 },
      expiresAt: expect.stringMatching(/^2026-02-07/),
    })
    service.receiver.take()
    await service.pay(renewal.id)
    const paid = [
      'payment.succeeded',
      'PAYMENT_SUCCESS',
      'payment.completed',
      'subscription.renewed',
      'SUBSCRIPTION_RENEWED',
    ]
    expect(service.receiver.types()).toEqual(paid)
    expect(await subscriptionOf(service, id)).toMatchObject({
      status: 'ACTIVE',
      currentCycle: 2,
      currentCycleDueAt: expect.stringMatching(/^2026-03-02T00:00:00/),
    })
  })

  it('ends when its grace lapses unpaid', async () => {
    const service = await startHeard()
    const { id } = await begin(service)
    await service.advance('36d')
    expect(await subscriptionOf(service, id)).toMatchObject({ status: 'PAST_DUE' })
    await service.advance('2d')
    expect(await subscriptionOf(service, id)).toMatchObject({ status: 'EXPIRED' })
    const [renewal] = await paymentsOf(service, id)
    expect(renewal.status).toBe('EXPIRED')
    expect(await service.refusal(`POST /sandbox/payments/${renewal.id}/pay`)).toBe(
      '409 INVALID_PAYMENT_STATUS_TRANSITION',
    )
    expect(service.receiver.types().at(-1)).toBe('subscription.expired')
  })

  it.each([
    ['is being confirmed', {}],
    ['is being swapped', { mode: 'AUTOSWAP' }],
  ])('can’t be canceled while the deposit of a renewal %s', async (_name, crypto) => {
    const service = await startService()
    const { id, payment } = await subscribe(service, { card: undefined, crypto })
    await service.pay(payment.id)
    await service.advance('31d')
    const [renewal] = await paymentsOf(service, id)
    await service.pay(renewal.id, 'mode' in crypto ? {} : { confirmations: 1 })
    for (const atPeriodEnd of [true, false]) {
      expect(await service.refusal(`POST /v3/subscriptions/${id}/cancel`, { atPeriodEnd })).toBe(
        '409 SUBSCRIPTION_NOT_CANCELABLE',
      )
    }
    await service.advance('1d')
    expect(await subscriptionOf(service, id)).toMatchObject({ status: 'ACTIVE', currentCycle: 2 })
    await service.data(`POST /v3/subscriptions/${id}/cancel`)
    await service.advance('30d')
    expect(await subscriptionOf(service, id)).toMatchObject({ status: 'CANCELED' })
  })

  it('stays while a deposit that came in time is being confirmed', async () => {
    const service = await startService()
    const { id } = await begin(service)
    await service.advance('36d')
    const [renewal] = await paymentsOf(service, id)
    await service.advance({ to: day(37) })
    await service.pay(renewal.id, { confirmations: 1 })
    await service.advance('1d')
    expect(await subscriptionOf(service, id)).toMatchObject({ status: 'ACTIVE', currentCycle: 2 })
  })
})
