import { describe, expect, it } from 'vitest'
import { PAYMENT_STATUSES } from '../../src/sandbox/model.js'
import { sectionOf } from './documents.js'
import { createPayment, createProduct, day, type Json, startHeard, startService } from './service.js'

const statuses = (payment: Json): readonly string[] =>
  payment.statusTimeline.map(({ status }: Json) => status)

describe('the statuses of a payment', () => {
  it('are those of the document', () => {
    const [, list = ''] = /Payment: (.*)\./.exec(sectionOf('v3', 'Statuses')) ?? []
    expect(list.split(', ')).toEqual(PAYMENT_STATUSES)
  })
})

describe('a card payment', () => {
  it('is authorized and captured when its buyer pays, and the receiver hears of it, signed', async () => {
    const service = await startHeard()
    const { id } = await createPayment(service)
    const payment = await service.pay(id)
    expect(payment).toMatchObject({ status: 'COMPLETED', priceCents: '1900', grossAmountCents: 1900 })
    expect(statuses(payment)).toEqual(['PENDING', 'AUTHORIZED', 'COMPLETED'])
    expect(service.receiver.types()).toEqual([
      'customer.created',
      'payment.authorized',
      'payment.succeeded',
      'payment.completed',
    ])
    expect(service.receiver.received.every(({ isSigned }) => isSigned)).toBe(true)
    expect(service.receiver.received.at(-1)?.event).toMatchObject({
      type: 'payment.completed',
      api_version: '3.0.0-beta',
      livemode: false,
      data: { object: 'payment', id, status: 'completed', price_cents: '1900' },
    })
  })

  it.each(['constructor', '__proto__'])('takes the token %s for a card that works', async (token) => {
    const service = await startService()
    const card = { tokenizedInstrument: token }
    expect(await createPayment(service, { card })).toMatchObject({ status: 'COMPLETED' })
  })

  it.each([
    ['soft_decline', 'DECLINED', 'insufficient_funds', 'SOFT'],
    ['hard_decline', 'DECLINED', 'stolen_card', 'HARD'],
    ['3ds_failed', 'DECLINED', 'authentication_failed', 'SOFT'],
    ['technical_failure', 'FAILED', null, null],
  ])(
    'that ends in %s is %s, and can be paid again until its deadline',
    async (outcome, status, declineCode, declineCategory) => {
      const service = await startHeard(['v3', 'v2'])
      const { id } = await createPayment(service)
      expect(await service.pay(id, { outcome })).toMatchObject({ status, declineCode, declineCategory })
      expect(
        service.receiver
          .take()
          .slice(-2)
          .map(({ type }) => type),
      ).toEqual(['payment.failed', 'CHECKOUT_FAILED'])
      expect(await service.pay(id)).toMatchObject({
        status: 'COMPLETED',
        declineCode: null,
        declineCategory: null,
      })
    },
  )

  it('waits for its bank where it asks first, and is paid or refused there', async () => {
    const service = await startService()
    const { id, productId } = await createPayment(service)
    expect(await service.pay(id, { outcome: '3ds_required' })).toMatchObject({ status: 'PENDING_3DS' })
    expect(statuses(await service.pay(id))).toEqual(['PENDING', 'PENDING_3DS', 'AUTHORIZED', 'COMPLETED'])
    const other = await service.data('POST /v3/payments', { productId, customerEmail: 'b@example.com' })
    await service.pay(other.id, { outcome: '3ds_required' })
    expect(statuses(await service.pay(other.id, { outcome: '3ds_failed' }))).toEqual([
      'PENDING',
      'PENDING_3DS',
      'DECLINED',
    ])
  })

  it('by a wallet goes through a redirect', async () => {
    const service = await startService()
    const { id } = await createPayment(service)
    const paid = await service.pay(id, { method: 'WALLET_B' })
    expect(statuses(paid)).toEqual(['PENDING', 'PENDING_REDIRECT', 'AUTHORIZED', 'COMPLETED'])
  })

  it('with manual capture rests authorized until it is captured', async () => {
    const service = await startHeard()
    const { id } = await createPayment(service, { card: { capture: 'manual' } })
    expect(await service.pay(id)).toMatchObject({ status: 'AUTHORIZED', paymentReceivedAt: null })
    expect(await service.data(`POST /sandbox/payments/${id}/capture`)).toMatchObject({ status: 'COMPLETED' })
    expect(service.receiver.types().slice(1)).toEqual([
      'payment.authorized',
      'payment.succeeded',
      'payment.completed',
    ])
    expect(await service.refusal(`POST /sandbox/payments/${id}/capture`)).toBe('409 PAYMENT_NOT_CAPTURABLE')
  })

  it('that is authorized can be voided, or fail while it settles', async () => {
    const service = await startHeard(['v3', 'v2'])
    const first = await createPayment(service, {
      card: { capture: 'manual', tokenizedInstrument: 'tok_good' },
    })
    expect(await service.data(`POST /sandbox/payments/${first.id}/void`)).toMatchObject({
      status: 'CANCELED',
    })
    expect(
      service.receiver
        .take()
        .slice(-2)
        .map(({ type }) => type),
    ).toEqual(['payment.canceled', 'CHECKOUT_CANCELED'])
    expect(await service.refusal(`POST /sandbox/payments/${first.id}/void`)).toBe('409 PAYMENT_NOT_VOIDABLE')
    const second = await createPayment(service, {
      card: { capture: 'manual', tokenizedInstrument: 'tok_good' },
    })
    expect(await service.pay(second.id, { outcome: 'technical_failure' })).toMatchObject({ status: 'FAILED' })
    expect(
      service.receiver
        .take()
        .slice(-2)
        .map(({ type }) => type),
    ).toEqual(['payment.failed', 'PAYMENT_FAILED'])
  })

  it.each([
    ['tok_good', 'COMPLETED'],
    ['tok_soft_decline', 'DECLINED'],
    ['tok_hard_decline', 'DECLINED'],
    ['tok_3ds', 'PENDING_3DS'],
    ['tok_technical_failure', 'FAILED'],
  ])('with the token %s is %s at once', async (tokenizedInstrument, status) => {
    const service = await startService()
    expect(await createPayment(service, { card: { tokenizedInstrument } })).toMatchObject({ status })
  })

  it('is paid out once', async () => {
    const service = await startHeard(['v3', 'v2'])
    const { id } = await createPayment(service)
    await service.pay(id)
    service.receiver.take()
    expect(await service.data(`POST /sandbox/payments/${id}/settle`, { outcome: 'failed' })).toMatchObject({
      paymentSettledAt: null,
    })
    expect(await service.data(`POST /sandbox/payments/${id}/settle`)).toMatchObject({
      paymentSettledAt: expect.any(String),
    })
    expect(service.receiver.types()).toEqual([
      'payout.failed',
      'payment.settled',
      'payout.completed',
      'PAYMENT_SETTLED',
    ])
    expect(service.receiver.received.at(-1)?.event.data).toMatchObject({
      payouts: [{ payoutAmountCents: 1805, currency: 'EUR' }],
      payments: [{ id, grossAmountCents: 1900, merchantNetCents: 1805, customerEmail: 'ada@example.com' }],
    })
    expect(await service.refusal(`POST /sandbox/payments/${id}/settle`)).toBe(
      '409 INVALID_PAYMENT_STATUS_TRANSITION',
    )
  })

  it('expires after half an hour, and can not be paid then', async () => {
    const service = await startHeard()
    const { id } = await createPayment(service)
    await service.advance('29m')
    expect(await service.data(`GET /v3/payments/${id}`)).toMatchObject({ status: 'PENDING' })
    await service.advance('1m')
    expect(await service.data(`GET /v3/payments/${id}`)).toMatchObject({ status: 'EXPIRED' })
    expect(await service.refusal(`POST /sandbox/payments/${id}/pay`)).toBe(
      '409 INVALID_PAYMENT_STATUS_TRANSITION',
    )
    expect(service.receiver.types()).toEqual(['customer.created'])
  })
})

describe('a payment of v2', () => {
  it('has no deadline unless it is given one', async () => {
    const service = await startService()
    const productId = await createProduct(service)
    const open = await service.data('POST /api/payment/create', { productId, customerEmail: 'a@example.com' })
    const limited = await service.data('POST /api/payment/create', {
      productId,
      customerEmail: 'a@example.com',
      expiresAt: day(2),
    })
    await service.advance('2d')
    expect(await service.data(`GET /api/payment/${open.paymentId}`)).toMatchObject({
      status: 'INITIATED',
      expiresAt: null,
    })
    expect(await service.data(`GET /api/payment/${limited.paymentId}`)).toMatchObject({
      status: 'TX_EXPIRED',
    })
    const past = { productId, expiresAt: day(1) }
    expect(await service.refusal('POST /api/payment/create', past)).toBe('422 VALIDATION_ERROR')
  })

  it('needs no customer until it is paid, and tells of none before', async () => {
    const service = await startHeard(['v2'])
    const productId = await createProduct(service)
    const { paymentId } = await service.data('POST /api/payment/create', {
      productId,
      metadata: { seat: 4 },
      externalRef: 'r',
    })
    expect(await service.refusal(`POST /sandbox/payments/${paymentId}/pay`)).toBe(
      '422 CHECKOUT_EMAIL_REQUIRED',
    )
    await service.pay(paymentId, { email: 'eve@example.com' })
    expect(service.receiver.types()).toEqual(['CHECKOUT_INITIATED', 'CHECKOUT_SUCCESS', 'PAYMENT_SUCCESS'])
    expect(service.receiver.received.at(-1)?.event.data).toEqual({
      payment: {
        ...{ id: paymentId, status: 'PAYMENT_SUCCESS', subscriptionId: null, productId, valueUsd: '2052' },
        ...{
          priceCents: '1900',
          currency: 'EUR',
          vatAmountCents: 0,
          totalAmountCents: 1900,
          refundedAmountCents: 0,
        },
        ...{
          txHash: null,
          source: 'FIAT',
          customerId: expect.stringMatching(/^cus_/),
          customerEmail: 'eve@example.com',
        },
        ...{ customerCommunityId: null, customerMessengerId: null },
        ...{ customerCommunityUsername: null, customerMessengerUsername: null },
      },
      context: { externalRef: 'r', metadata: { seat: 4 }, successUrl: null, cancelUrl: null },
    })
  })

  it.each([
    ['INITIATED', {}, [], 200],
    ['PENDING', {}, [{ outcome: '3ds_required' }], 200],
    ['CHECKOUT_FAILED', {}, [{ outcome: 'soft_decline' }], 200],
    ['PROCESSING', {}, [{ method: 'CRYPTO', confirmations: 1 }], 409],
    ['CHECKOUT_SUCCESS', { card: { capture: 'manual' } }, [{}], 409],
    ['PAYMENT_SUCCESS', {}, [{}], 409],
    ['TX_SUCCESS', {}, [{ method: 'CRYPTO' }], 409],
  ])('that is %s answers a cancel as the document says', async (status, more, steps, expected) => {
    const service = await startHeard(['v2'])
    const { id } = await createPayment(service, more)
    for (const step of steps) await service.pay(id, step)
    expect(await service.data(`GET /api/payment/${id}`)).toMatchObject({ status })
    service.receiver.take()
    const answer = await service.call(`POST /api/payment/${id}/cancel`, {})
    expect(answer.status).toBe(expected)
    if (expected === 409) return expect(answer.body.error).toBe('PAYMENT_NOT_CANCELABLE')
    const again = await service.data(`POST /api/payment/${id}/cancel`, {})
    expect(again).toMatchObject({ status: 'CANCELED', canceledAt: answer.body.data.canceledAt })
    expect(await service.refusal(`POST /sandbox/payments/${id}/pay`)).toBe(
      '409 INVALID_PAYMENT_STATUS_TRANSITION',
    )
    await service.advance('1s')
    expect(service.receiver.types()).toEqual(['CHECKOUT_CANCELED'])
  })
})

describe('a price', () => {
  it('that the product leaves open comes with the payment', async () => {
    const service = await startService()
    const productId = await createProduct(service, { isCustomPrice: true, priceCents: undefined })
    const buy = { productId, customerEmail: 'a@example.com' }
    expect(await service.refusal('POST /v3/payments', buy)).toBe('422 PRODUCT_PRICE_MISSING')
    expect(await service.refusal('POST /v3/payments', { ...buy, priceCents: '700' })).toBe(
      '422 VALIDATION_ERROR',
    )
    const paid = await service.data('POST /v3/payments', { ...buy, priceCents: '700', currency: 'USD' })
    expect(paid).toMatchObject({ priceCents: '700', currency: 'USD' })
    const fixed = { productId: await createProduct(service), priceCents: '700', currency: 'USD' }
    expect(await service.refusal('POST /v3/payments', fixed)).toBe('422 VALIDATION_ERROR')
  })

  it.each([
    [true, 1900, 303],
    [false, 2261, 361],
  ])(
    'with VAT included %s comes to a gross of %i where the service is merchant of record',
    async (taxInclusive, gross, vat) => {
      const service = await startService({ merchantOfRecord: true })
      const payment = await createPayment(service, { customerCountry: 'DE' }, { taxInclusive })
      expect(payment).toMatchObject({
        grossAmountCents: gross,
        vatAmountCents: vat,
        vatRateBps: 1900,
        taxInclusive,
      })
      const elsewhere = await createPayment(service, {
        customerEmail: 'b@example.com',
        customerCountry: 'US',
      })
      expect(elsewhere).toMatchObject({ grossAmountCents: 1900, vatAmountCents: null, vatRateBps: null })
    },
  )
})

describe('a refund', () => {
  it('takes parts back until nothing is left, and tells the sum', async () => {
    const service = await startHeard(['v3', 'v2'])
    const { id } = await createPayment(service)
    await service.pay(id)
    service.receiver.take()
    expect(await service.data(`POST /api/refund/${id}`, { amountInCents: 500 })).toMatchObject({
      refundedAmountCents: 500,
    })
    expect(await service.data(`POST /api/refund/${id}`, { amountInCents: 500 })).toMatchObject({
      refundedAmountCents: 1000,
    })
    expect(await service.refusal(`POST /api/refund/${id}`, { amountInCents: 901 })).toBe(
      '422 PAYMENT_NOT_REFUNDABLE',
    )
    expect(await service.data(`POST /sandbox/payments/${id}/refund`)).toMatchObject({
      status: 'REFUNDED',
      refundedAmountCents: 1900,
    })
    expect(await service.refusal(`POST /api/refund/${id}`)).toBe('422 PAYMENT_NOT_REFUNDABLE')
    expect(
      service.receiver.received.map(({ type, event }) => [type, event.data.payment?.refundedAmountCents]),
    ).toEqual([
      ['payment.partially_refunded', undefined],
      ['PARTIAL_REFUNDED', 500],
      ['payment.partially_refunded', undefined],
      ['PARTIAL_REFUNDED', 1000],
      ['payment.refunded', undefined],
      ['PAYMENT_REFUNDED', 1900],
    ])
  })

  it('is for cards alone', async () => {
    const service = await startService()
    const { id } = await createPayment(service)
    await service.pay(id, { method: 'CRYPTO' })
    expect(await service.refusal(`POST /api/refund/${id}`)).toBe('422 PAYMENT_NOT_REFUNDABLE')
  })
})

describe('a chargeback', () => {
  it('of a paid card is told once, and shows in the legacy status', async () => {
    const service = await startHeard(['v3', 'v2'])
    const { id } = await createPayment(service)
    const path = `POST /sandbox/payments/${id}/chargeback`
    expect(await service.refusal(path)).toBe('409 INVALID_PAYMENT_STATUS_TRANSITION')
    await service.pay(id)
    service.receiver.take()
    await service.data(path)
    expect(service.receiver.types()).toEqual(['payment.chargeback', 'PAYMENT_CHARGEBACK'])
    expect((await service.data('GET /api/payment?status=CHARGEBACK')).data).toMatchObject([
      { id, status: 'CHARGEBACK' },
    ])
    expect(await service.refusal(path)).toBe('409 INVALID_PAYMENT_STATUS_TRANSITION')
    expect(await service.refusal(`POST /api/refund/${id}`)).toBe('422 PAYMENT_NOT_REFUNDABLE')
  })
})

describe('a deposit', () => {
  const pay = { method: 'CRYPTO', crypto: { chainId: 1, assetId: 'USDT' } }

  it('of the whole amount, confirmed, completes the payment on-chain', async () => {
    const service = await startHeard(['v3', 'v2'])
    const { id } = await createPayment(service, { crypto: { chainId: 1, assetId: 'usdt' } })
    const paid = await service.pay(id)
    expect(statuses(paid)).toEqual(['PENDING', 'RECEIVED', 'COMPLETED'])
    expect(paid).toMatchObject({
      tokenAmount: '20520000',
      asset: { chainId: 1, symbol: 'USDT', decimals: 6 },
      deposit: {
        expected: '20520000',
        received: '20520000',
        remaining: '0',
        confirmations: { observed: 12, required: 12 },
        warnings: [],
      },
      paymentSettledAt: expect.any(String),
    })
    const types = [
      'customer.created',
      'CHECKOUT_INITIATED',
      'payment.succeeded',
      'PAYMENT_SUCCESS',
      'payment.completed',
    ]
    expect(service.receiver.types()).toEqual(types)
    expect(service.receiver.received[3]?.event.data.payment).toMatchObject({
      source: 'CRYPTO',
      txHash: expect.any(String),
      status: 'TX_SUCCESS',
    })
  })

  it('of too little waits for the rest, with a warning', async () => {
    const service = await startService()
    const { id } = await createPayment(service)
    expect(await service.pay(id, { ...pay, share: 0.5 })).toMatchObject({
      status: 'PARTIAL',
      deposit: {
        remaining: '10260000',
        warnings: [{ code: 'INSUFFICIENT_DEPOSIT_AMOUNT' }],
        confirmations: null,
      },
    })
    expect(await service.pay(id, { share: 0.25, warning: 'NETWORK_FEE_SURCHARGE' })).toMatchObject({
      status: 'PARTIAL',
      deposit: {
        remaining: '5130000',
        warnings: [{ code: 'INSUFFICIENT_DEPOSIT_AMOUNT' }, { code: 'NETWORK_FEE_SURCHARGE' }],
      },
    })
    expect(await service.pay(id, { warning: 'RBF_DETECTED' })).toMatchObject({ status: 'COMPLETED' })
  })

  it('is confirmed step by step, or by the clock', async () => {
    const service = await startService()
    const { id } = await createPayment(service)
    expect(await service.pay(id, { ...pay, confirmations: 3 })).toMatchObject({
      status: 'RECEIVED',
      deposit: { confirmations: { observed: 3, required: 12 } },
    })
    expect(await service.pay(id, { confirmations: 5 })).toMatchObject({
      deposit: { confirmations: { observed: 5 } },
    })
    await service.advance('2m')
    expect(await service.data(`GET /v3/payments/${id}`)).toMatchObject({ status: 'COMPLETED' })
  })

  it('goes over a bridge where it is swapped', async () => {
    const service = await startService()
    const { id } = await createPayment(service, { crypto: { mode: 'AUTOSWAP' } })
    expect(await service.pay(id)).toMatchObject({ status: 'BRIDGING', cryptoSettlementMode: 'AUTOSWAP' })
    await service.advance('2m')
    expect(await service.data(`GET /v3/payments/${id}`)).toMatchObject({ status: 'COMPLETED' })
  })

  it('can fail on-chain', async () => {
    const service = await startHeard(['v3', 'v2'])
    const { id } = await createPayment(service)
    await service.pay(id, { ...pay, confirmations: 1 })
    service.receiver.take()
    expect(await service.pay(id, { outcome: 'technical_failure' })).toMatchObject({ status: 'FAILED' })
    expect(service.receiver.types()).toEqual(['payment.failed', 'PAYMENT_FAILED'])
  })

  it.each([
    [1, 60],
    [8453, 30],
    [101, 15],
  ])('on chain %i is waited for %i minutes', async (chainId, minutes) => {
    const service = await startService()
    const { id } = await createPayment(service, { crypto: { chainId } })
    await service.advance(`${minutes - 1}m`)
    expect(await service.data(`GET /v3/payments/${id}`)).toMatchObject({ status: 'PENDING' })
    await service.advance('1m')
    expect(await service.data(`GET /v3/payments/${id}`)).toMatchObject({ status: 'EXPIRED' })
  })
})
