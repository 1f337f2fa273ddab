import { describe, expect, it } from 'vitest'
import { SERVICE_CODES as CODES } from '../../src/provider/service-codes.js'
import { codesOf, rowsOf } from './documents.js'
import {
  createPayment,
  createProduct,
  day,
  delivered,
  type Json,
  KEY,
  MONTHLY,
  ONE_TIME,
  type Service,
  START,
  startHeard,
  startService,
  subscribe,
} from './service.js'

describe('the codes', () => {
  it('are those of both documents', () => {
    const documented = new Set([...codesOf('v3'), ...codesOf('v2')])
    expect(Object.keys(CODES).sort()).toEqual([...documented].sort())
    expect(documented.size).toBeGreaterThan(95)
  })

  it('have the statuses that the documents give', () => {
    const stated = [...rowsOf('v3', 'Errors of a change of plan'), ...rowsOf('v2', 'Errors')]
    for (const [status, code = ''] of stated) {
      // Of this one the documents differ: 422 in v3, 409 in v2.
      if (code in CODES && code !== 'IDEMPOTENCY_KEY_CONFLICT') {
        expect([code, CODES[code as keyof typeof CODES]]).toEqual([code, Number(status)])
      }
    }
  })

  it.each(Object.entries(CODES))('%s comes on request', async (code, status) => {
    const service = await startService()
    await service.faults({ answers: [{ code, operation: 'GET /v3/balance' }] })
    expect(await service.refusal('GET /v3/balance')).toBe(`${status} ${code}`)
    expect((await service.call('GET /v3/balance')).status).toBe(200)
  })
})

/** The codes that a rule raises, beside those of plan changes, which have their own tests. */
const RAISED: Readonly<Record<string, (service: Service) => Promise<string>>> = {
  NOT_FOUND: (service) => service.refusal('GET /v3/nothing'),
  BAD_REQUEST: (service) => service.refusal('POST /v3/products', '{'),
  VALIDATION_ERROR: (service) => service.refusal('POST /v3/products', {}),
  MISSING_FIELD: async (service) => service.refusal(`PATCH /v3/products/${await createProduct(service)}`, {}),
  INVALID_ID: (service) => service.refusal('GET /v3/products/%01'),
  PAYMENT_NOT_FOUND: (service) => service.refusal('GET /v3/payments/pay_x'),
  PRODUCT_NOT_FOUND: (service) => service.refusal('POST /v3/payments', { productId: 'pro_x' }),
  CUSTOMER_NOT_FOUND: async (service) =>
    service.refusal('POST /api/payment/create', {
      productId: await createProduct(service),
      customerId: 'cus_x',
    }),
  SUBSCRIPTION_NOT_FOUND: (service) => service.refusal('GET /v3/subscriptions/sub_x'),
  SUBSCRIPTION_PRODUCT_NOT_FOUND: (service) =>
    service.refusal('POST /v3/subscriptions', { productId: 'pro_x' }),
  SUBSCRIPTION_CUSTOMER_NOT_FOUND: async (service) =>
    service.refusal('POST /v3/subscriptions', {
      productId: await createProduct(service, MONTHLY),
      customerId: 'cus_x',
    }),
  PRODUCT_NOT_RECURRING: async (service) =>
    service.refusal('POST /v3/subscriptions', { productId: await createProduct(service) }),
  RECURRING_REQUIRES_INTERVAL: async (service) =>
    service.refusal(`PATCH /v3/products/${await createProduct(service, MONTHLY)}`, { frequencyInDays: null }),
  async PRODUCT_ARCHIVED(service) {
    const productId = await createProduct(service)
    await service.call(`DELETE /v3/products/${productId}`)
    return service.refusal('POST /v3/payments', { productId })
  },
  async PRODUCT_OUT_OF_STOCK(service) {
    const { productId } = await subscribe(service, { product: { supply: 1 } })
    await service.advance('31d')
    return service.refusal('POST /v3/subscriptions', { productId, customerEmail: 'b@example.com' })
  },
  CRYPTO_ASSET_NOT_ACCEPTED: async (service) =>
    service.refusal('POST /v3/payments', {
      productId: await createProduct(service, { acceptedChains: [1] }),
      crypto: { chainId: 101 },
    }),
  CRYPTO_PAYMENT_BELOW_MIN: async (service) =>
    service.refusal('POST /v3/payments', {
      productId: await createProduct(service, { priceCents: '40', paymentMethods: ['CRYPTO'] }),
      crypto: {},
    }),
  CHECKOUT_METHOD_NOT_AVAILABLE: async (service) =>
    service.refusal('POST /v3/checkout/sessions', {
      productId: await createProduct(service, { paymentMethods: ['CARD'] }),
      paymentMethods: ['CRYPTO'],
    }),
  CHECKOUT_SUBSCRIPTION_REQUIRES_RECURRING_PRODUCT: async (service) =>
    service.refusal('POST /v3/checkout/sessions', {
      productId: await createProduct(service),
      mode: 'subscription',
    }),
  async CHECKOUT_PRODUCT_INACTIVE(service) {
    const productId = await createProduct(service, { platform: 'MESSENGER', messengerGroupId: '-1' })
    const refusal = await service.refusal('POST /v3/checkout/sessions', { productId })
    await service.data(`PATCH /v3/products/${productId}`, { status: 'ACTIVE' })
    await service.data('POST /v3/checkout/sessions', { productId })
    return refusal
  },
  async CUSTOMER_ALREADY_EXISTS(service) {
    const { customerId } = await createPayment(service)
    await createPayment(service, { customerEmail: 'b@example.com' })
    return service.refusal(`PATCH /sandbox/customers/${customerId}`, { email: 'B@example.com' })
  },
  SETUP_INTENT_CUSTOMER_NOT_FOUND: (service) =>
    service.refusal('POST /v3/setup-intents', { customerId: 'cus_x' }),
  WEBHOOK_ENDPOINT_NOT_FOUND: (service) => service.refusal('POST /v3/webhook-endpoints/whep_x/rotate-secret'),
  async CUSTOMER_PAYMENT_METHOD_NOT_FOUND(service) {
    const { customerId } = await createPayment(service)
    return service.refusal(`DELETE /v3/customers/${customerId}/payment-methods/pm_x`)
  },
  async CUSTOMER_PAYMENT_METHOD_REVOKED(service) {
    const { customerId } = await createPayment(service)
    const { paymentMethodId } = await service.data('POST /v3/setup-intents', { customerId })
    const path = `DELETE /v3/customers/${customerId}/payment-methods/${paymentMethodId}`
    expect((await service.call(path)).status).toBe(204)
    return service.refusal(path)
  },
}

describe('a rule raises', () => {
  it.each(Object.entries(RAISED))('%s', async (code, raise) => {
    expect(await raise(await startService())).toBe(`${CODES[code as keyof typeof CODES]} ${code}`)
  })

  it('NOT_FOUND for an endpoint that is updated and not there', async () => {
    const service = await startService()
    expect(await service.refusal('PATCH /v3/webhook-endpoints/whep_x', { isActive: true })).toBe(
      '404 NOT_FOUND',
    )
  })
})

describe('a product', () => {
  it.each([
    ['name', { name: '' }],
    ['name', { name: 'x'.repeat(101) }],
    ['description', { description: 'x'.repeat(501) }],
    ['priceCents', { priceCents: '199' }],
    ['priceCents', { priceCents: '0' }],
    ['priceCents', { priceCents: 1900 }],
    ['priceCents', { priceCents: undefined }],
    ['currency', { currency: 'GBP' }],
    ['paymentMethods', { paymentMethods: [] }],
    ['frequencyInDays', { frequencyInDays: 0 }],
    ['supply', { supply: 0 }],
    ['imageUrl', { imageUrl: 'javascript:alert(1)' }],
    ['communityGuildId', { platform: 'COMMUNITY', communityRoleId: '1' }],
    ['messengerGroupId', { platform: 'MESSENGER' }],
    ['messengerGroupId', { platform: 'MESSENGER', messengerGroupId: '1' }],
    ['acceptedAssets', { acceptedAssets: ['DOGE'] }],
  ])('is refused for its %s: %j', async (field, more) => {
    const service = await startService()
    for (const path of ['/v3/products', '/api/product/create']) {
      const { status, body } = await service.call(`POST ${path}`, { ...ONE_TIME, ...more })
      expect([status, body.error]).toEqual([422, 'VALIDATION_ERROR'])
      expect(body.data.fieldErrors[0]).toEqual({ field, message: expect.any(String) })
    }
  })

  it('drops chains that have none of its assets', async () => {
    const service = await startService()
    const product = await service.data('POST /api/product/create', {
      ...ONE_TIME,
      acceptedAssets: ['usdt', 'BNB'],
      acceptedChains: [1, 56, 101],
    })
    expect(product.acceptedChains.map(({ id }: Json) => id)).toEqual([1, 56])
    expect(product.acceptedAssets).toEqual([
      { symbol: 'USDT', decimals: 6 },
      { symbol: 'BNB', decimals: 18 },
    ])
  })

  it('for a community shows its role', async () => {
    const service = await startService()
    const community = { platform: 'COMMUNITY', communityGuildId: '7', communityRoleId: '8' }
    expect(await service.data('POST /v3/products', { ...MONTHLY, ...community })).toMatchObject({
      status: 'ACTIVE',
      ...community,
    })
  })
})

describe('a customer', () => {
  it('is found again by email, keeps the id when the email changes, and gets a name once', async () => {
    const service = await startHeard()
    const first = await createPayment(service, { customerFirstName: 'Ada', customerLastName: 'Lovelace' })
    const again = await createPayment(service, { customerEmail: 'ADA@example.com', customerFirstName: 'Eve' })
    expect(again.customerId).toBe(first.customerId)
    await service.data(`PATCH /sandbox/customers/${first.customerId}`, {
      email: 'ada@example.org',
      communityId: '810',
    })
    expect(await service.data(`GET /v3/customers/${first.customerId}`)).toMatchObject({
      email: 'ada@example.org',
      name: 'Ada Lovelace',
    })
    expect(await createPayment(service)).not.toMatchObject({ customerId: first.customerId })
    await delivered(service)
    expect(service.receiver.types()).toEqual(['customer.created', 'customer.updated', 'customer.created'])
  })

  it('that is made by hand keeps the accounts that the request names', async () => {
    const service = await startHeard(['v2'])
    const accounts = { communityId: '810', messengerUsername: 'ada' }
    await service.data('POST /sandbox/customers', { email: 'ada@example.com', ...accounts })
    await service.pay((await createPayment(service)).id)
    expect(service.receiver.received.at(-1)?.event.data.payment).toMatchObject({
      ...{ customerCommunityId: '810', customerMessengerUsername: 'ada', customerMessengerId: null },
    })
  })

  it('that is deleted is gone from both lists, and so are its cards', async () => {
    const service = await startHeard()
    const { id, customerId } = await subscribe(service)
    service.receiver.take()
    await service.data(`DELETE /v3/customers/${customerId}`)
    await delivered(service)
    expect(service.receiver.types()).toEqual(['payment_method.detached', 'customer.deleted'])
    expect(await service.refusal(`GET /v3/customers/${customerId}`)).toBe('404 CUSTOMER_NOT_FOUND')
    expect(await service.refusal('GET /api/customer/search?email=ada@example.com')).toBe(
      '404 CUSTOMER_NOT_FOUND',
    )
    expect((await service.data('GET /v3/customers')).items).toEqual([])
    await service.advance('31d')
    expect(await service.data(`GET /v3/subscriptions/${id}`)).toMatchObject({ status: 'EXPIRED' })
  })

  it('saves a card with a setup intent, unless the card is declined', async () => {
    const service = await startHeard()
    const { customerId } = await createPayment(service)
    const intent = (tokenizedInstrument: string) =>
      service.data('POST /v3/setup-intents', { customerId, card: { tokenizedInstrument } })
    expect(await intent('tok_hard_decline')).toMatchObject({ status: 'FAILED', paymentMethodId: null })
    expect(await intent('tok_good')).toMatchObject({ status: 'SUCCEEDED' })
    await delivered(service)
    expect(service.receiver.types()).toEqual(['customer.created', 'payment_method.attached'])
  })
})

it('refuses a body that is nested too deeply, with a key that makes it safe to repeat and without', async () => {
  const service = await startService()
  const deep = `{"metadata":{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}}`
  for (const headers of [{}, { 'Idempotency-Key': 'deep' }]) {
    const { status } = await service.call('POST /v3/payments', deep, headers)
    expect(status).toBeLessThan(500)
  }
})

describe('the clock', () => {
  it('stands still until it is moved, by a duration or to an instant', async () => {
    const service = await startService()
    expect(await service.data('GET /sandbox/clock')).toEqual({ now: START })
    expect(await service.data('POST /sandbox/clock/advance', { by: '90m' })).toEqual({
      now: '2026-01-01T01:30:00.000Z',
    })
    expect(await service.data('POST /sandbox/clock/advance', { to: day(3) })).toEqual({ now: day(3) })
  })

  it.each([[{}], [{ by: '1d', to: day(5) }], [{ to: day(-1) }], [{ by: '2 weeks' }], [{ by: '9999d' }]])(
    'does not move by %j',
    async (body) => {
      const service = await startService()
      expect(await service.refusal('POST /sandbox/clock/advance', body)).toBe('422 VALIDATION_ERROR')
    },
  )

  it('moves once at a time, and does what falls due in order', async () => {
    const service = await startHeard()
    await subscribe(service, { product: { frequencyInDays: 7 } })
    await subscribe(service, { customerEmail: 'b@example.com', product: { frequencyInDays: 3 } })
    service.receiver.take()
    await Promise.all([service.advance('10d'), service.advance({ to: day(21) })])
    const renewals = service.receiver.received
      .filter(({ type }) => type === 'subscription.renewed')
      .map(({ event }) => event.createdAt)
    expect(renewals.map((at) => at.slice(8, 10))).toEqual(
      ['04', '07', '08', '10', '13', '15', '16', '19', '22'].filter((at) => at <= '21'),
    )
    expect(renewals).toEqual([...renewals].sort())
  })
})

describe('an idempotency key', () => {
  const key = (text: string) => ({ 'Idempotency-Key': text })

  it('has a repeated request answered again without being done again, for a day', async () => {
    const service = await startService()
    const first = await service.call('POST /v3/products', ONE_TIME, key('a'))
    expect(await service.call('POST /v3/products', ONE_TIME, key('a'))).toMatchObject({
      status: 201,
      body: first.body,
    })
    expect((await service.data('GET /v3/products')).items).toHaveLength(1)
    await service.advance('23h')
    expect((await service.call('POST /v3/products', ONE_TIME, key('a'))).body).toEqual(first.body)
    await service.advance('1h')
    expect((await service.call('POST /v3/products', ONE_TIME, key('a'))).body).not.toEqual(first.body)
  })

  it('with another request is a conflict', async () => {
    const service = await startService()
    await service.call('POST /v3/products', ONE_TIME, key('a'))
    const other = await service.call('POST /v3/products', MONTHLY, key('a'))
    expect([other.status, other.body.error]).toEqual([422, 'IDEMPOTENCY_KEY_CONFLICT'])
    const long = await service.call('POST /v3/products', ONE_TIME, key('x'.repeat(256)))
    expect([long.status, long.body.error]).toEqual([422, 'VALIDATION_ERROR'])
  })

  it('of a request that is still being worked on is a conflict, too', async () => {
    const service = await startService()
    await service.faults({ answers: [{ slowMs: 300, operation: 'POST /v3/products' }] })
    const first = service.call('POST /v3/products', ONE_TIME, key('a'))
    await expect.poll(async () => (await service.data('GET /sandbox/faults')).answers).toEqual([])
    const second = await service.call('POST /v3/products', ONE_TIME, key('a'))
    expect([second.status, second.body.error]).toEqual([409, 'IDEMPOTENCY_KEY_CONFLICT'])
    expect((await first).status).toBe(201)
  })

  it('of a charge that was declined gives the same refusal again', async () => {
    const service = await startService()
    const productId = await createProduct(service, MONTHLY)
    const body = {
      productId,
      customerEmail: 'a@example.com',
      card: { tokenizedInstrument: 'tok_soft_decline' },
    }
    const first = await service.call('POST /v3/subscriptions', body, key('a'))
    expect((await service.call('POST /v3/subscriptions', body, key('a'))).body).toEqual(first.body)
    expect((await service.data('GET /v3/subscriptions')).items).toHaveLength(1)
  })

  it('of a refund of v2 comes in the header, else in the body, and says that it replays', async () => {
    const service = await startService()
    const { id } = await createPayment(service)
    await service.pay(id)
    const body = { amountInCents: 100, idempotencyKey: 'in the body' }
    const first = await service.call(`POST /api/refund/${id}`, body)
    expect(first.headers.get('idempotency-replayed')).toBeNull()
    const again = await service.call(`POST /api/refund/${id}`, body)
    expect(again.body).toEqual(first.body)
    expect(again.headers.get('idempotency-replayed')).toBe('true')
    const other = await service.call(`POST /api/refund/${id}`, { ...body, amountInCents: 200 })
    expect([other.status, other.body.error]).toEqual([409, 'IDEMPOTENCY_KEY_CONFLICT'])
    await service.data(`POST /api/refund/${id}`, body, key('in the header'))
    expect(await service.data(`GET /v3/payments/${id}`)).toMatchObject({ refundedAmountCents: 200 })
  })

  it('of a refund of v2 that is in flight has a code of its own', async () => {
    const service = await startService()
    const { id } = await createPayment(service)
    await service.pay(id)
    await service.faults({ answers: [{ slowMs: 300 }] })
    const first = service.call(`POST /api/refund/${id}`, {}, key('a'))
    await expect.poll(async () => (await service.data('GET /sandbox/faults')).answers).toEqual([])
    const second = await service.call(`POST /api/refund/${id}`, {}, key('a'))
    expect([second.status, second.body.error]).toEqual([409, 'IDEMPOTENCY_REQUEST_IN_PROGRESS'])
    expect((await first).status).toBe(200)
  })
})

describe('the key of the sandbox', () => {
  it('is made if none is given, and must be a sandbox key', async () => {
    expect((await startService({ key: KEY })).key).toBe(KEY)
    await expect(startService({ key: 'sk_live_x' })).rejects.toThrow('sk_sandbox_')
  })
})
