import { describe, expect, it } from 'vitest'
import { OPERATIONS } from '../../src/sandbox/server.js'
import { namesIn, operationsOf, words } from './documents.js'
import {
  type Answer,
  createPayment,
  createProduct,
  type Json,
  MONTHLY,
  ONE_TIME,
  type Service,
  START,
  startService,
  subscribe,
} from './service.js'

const served = (generation: string): readonly string[] =>
  OPERATIONS.filter(
    (one) => one.generation === generation || (generation === 'v3' && one.generation === 'open'),
  ).map(({ method, path }) => words(method, path))

describe('the table of operations', () => {
  it('has those of the v3 document, and no other', () => {
    expect(operationsOf('v3')).toHaveLength(31)
    expect([...served('v3')].sort()).toEqual([...operationsOf('v3')].sort())
  })

  it('has those of the v2 document, and no other', () => {
    expect(operationsOf('v2')).toHaveLength(17)
    expect([...served('v2')].sort()).toEqual([...operationsOf('v2')].sort())
  })
})

interface Story {
  readonly service: Service
  readonly subscription: Awaited<ReturnType<typeof subscribe>>
  /** A one-time payment that is still to be paid. */
  readonly payment: Json
}

interface Row {
  readonly path: (story: Story) => string
  readonly body?: (story: Story) => unknown
  readonly status: number
  /** What the data shows; of a list, each of its items. */
  readonly shows?: (story: Story) => object
  /** For the few answers without an envelope. */
  readonly bare?: (answer: Answer) => void
}

const isList = { items: expect.any(Array), pagination: { nextCursor: null, hasMore: false } }
const isPage = {
  data: expect.any(Array),
  pagination: { page: 1, limit: 25, total: expect.any(Number), totalPages: 1 },
}
const isEmpty = ({ body }: Answer): void => expect(body).toBe('')

/** One for each operation: a request that succeeds, and what its answer shows. */
const ROWS: Readonly<Record<string, Row>> = {
  'POST /v3/products': {
    path: () => '/v3/products',
    body: () => ({ ...MONTHLY, supply: 3 }),
    status: 201,
    shows: () => ({
      id: expect.stringMatching(/^pro_/),
      status: 'ACTIVE',
      priceCents: '1900',
      frequencyInDays: 30,
      supply: 3,
    }),
  },
  'GET /v3/products': { path: () => '/v3/products', status: 200, shows: () => isList },
  'GET /v3/products/:': {
    path: ({ subscription }) => `/v3/products/${subscription.productId}`,
    status: 200,
    shows: ({ subscription }) => ({ id: subscription.productId, name: 'Monthly' }),
  },
  'PATCH /v3/products/:': {
    path: ({ subscription }) => `/v3/products/${subscription.productId}`,
    body: () => ({ name: 'Renamed' }),
    status: 200,
    shows: () => ({ name: 'Renamed', priceCents: '1900' }),
  },
  'DELETE /v3/products/:': {
    path: ({ subscription }) => `/v3/products/${subscription.productId}`,
    status: 204,
    bare: isEmpty,
  },
  'GET /v3/products/:/analytics': {
    path: ({ subscription }) => `/v3/products/${subscription.productId}/analytics`,
    status: 200,
    shows: () => ({ payments: 1, activeSubscriptions: 1 }),
  },
  'POST /v3/payments': {
    path: () => '/v3/payments',
    body: ({ payment }) => ({
      productId: payment.productId,
      customerEmail: 'eve@example.com',
      externalRef: 'order 7',
    }),
    status: 201,
    shows: () => ({
      status: 'PENDING',
      externalRef: 'order 7',
      paymentUrl: expect.stringContaining('/checkout/pay_'),
    }),
  },
  'GET /v3/payments': { path: () => '/v3/payments', status: 200, shows: () => isList },
  'GET /v3/payments/:': {
    path: ({ payment }) => `/v3/payments/${payment.id}`,
    status: 200,
    shows: ({ payment }) => ({ id: payment.id, status: 'PENDING' }),
  },
  'GET /v3/payments/:/receipt.pdf': {
    path: ({ subscription }) => `/v3/payments/${subscription.payment.id}/receipt.pdf`,
    status: 200,
    bare: ({ headers, body }) => {
      expect(headers.get('content-type')).toBe('application/pdf')
      expect(body).toMatch(/^%PDF-1\.4[\s\S]*19\.00 EUR[\s\S]*%%EOF\n$/)
    },
  },
  'POST /v3/subscriptions': {
    path: () => '/v3/subscriptions',
    body: ({ subscription }) => ({ productId: subscription.productId, customerEmail: 'eve@example.com' }),
    status: 201,
    shows: () => ({
      id: expect.stringMatching(/^sub_/),
      status: 'INCOMPLETE',
      payment: { status: 'PENDING' },
      paymentUrl: expect.stringContaining('/checkout/pay_'),
    }),
  },
  'GET /v3/subscriptions': { path: () => '/v3/subscriptions', status: 200, shows: () => isList },
  'GET /v3/subscriptions/:': {
    path: ({ subscription }) => `/v3/subscriptions/${subscription.id}`,
    status: 200,
    shows: () => ({ status: 'ACTIVE', currentCycle: 1, scheduledChange: { type: 'DOWNGRADE' } }),
  },
  'POST /v3/subscriptions/:/cancel': {
    path: ({ subscription }) => `/v3/subscriptions/${subscription.id}/cancel`,
    status: 200,
    shows: () => ({ status: 'CANCELED', currentCycleDueAt: null }),
  },
  'POST /v3/subscriptions/:/change-plan': {
    path: ({ subscription }) => `/v3/subscriptions/${subscription.id}/change-plan`,
    body: ({ payment }) => ({ productId: payment.cheaper }),
    status: 202,
    shows: () => ({ applied: false, scheduledChange: { type: 'DOWNGRADE', appliedAt: null } }),
  },
  'POST /v3/subscriptions/:/cancel-plan-change': {
    path: ({ subscription }) => `/v3/subscriptions/${subscription.id}/cancel-plan-change`,
    status: 200,
    shows: () => ({
      subscription: { scheduledChange: null },
      scheduledChange: { canceledAt: expect.any(String) },
    }),
  },
  'GET /v3/customers': {
    path: () => '/v3/customers?email=ADA@example.com',
    status: 200,
    shows: () => isList,
  },
  'GET /v3/customers/:': {
    path: ({ subscription }) => `/v3/customers/${subscription.customerId}`,
    status: 200,
    shows: () => ({ email: 'ada@example.com' }),
  },
  'DELETE /v3/customers/:': {
    path: ({ subscription }) => `/v3/customers/${subscription.customerId}`,
    status: 200,
    shows: () => ({ deleted: true }),
  },
  'GET /v3/customers/:/payment-methods': {
    path: ({ subscription }) => `/v3/customers/${subscription.customerId}/payment-methods`,
    status: 200,
    shows: () => ({ items: [{ id: expect.stringMatching(/^pm_/), type: 'CARD' }] }),
  },
  'DELETE /v3/customers/:/payment-methods/:': {
    path: ({ subscription, payment }) =>
      `/v3/customers/${subscription.customerId}/payment-methods/${payment.saved}`,
    status: 204,
    bare: isEmpty,
  },
  'GET /v3/customers/:/analytics': {
    path: ({ subscription }) => `/v3/customers/${subscription.customerId}/analytics`,
    status: 200,
    shows: () => ({ payments: 1, activeSubscriptions: 1 }),
  },
  'POST /v3/setup-intents': {
    path: () => '/v3/setup-intents',
    body: ({ subscription }) => ({ customerId: subscription.customerId }),
    status: 201,
    shows: () => ({ status: 'SUCCEEDED', paymentMethodId: expect.stringMatching(/^pm_/) }),
  },
  'POST /v3/checkout/sessions': {
    path: () => '/v3/checkout/sessions',
    body: ({ payment }) => ({ productId: payment.productId }),
    status: 201,
    shows: () => ({ id: expect.stringMatching(/^cs_/), url: expect.stringContaining('/checkout/cs_') }),
  },
  'GET /v3/balance': {
    path: () => '/v3/balance',
    status: 200,
    shows: () => ({
      balances: [{ currency: 'USD' }, { currency: 'EUR', card: { availableCents: 0, pendingCents: 1805 } }],
    }),
  },
  'GET /v3/analytics': {
    path: () => '/v3/analytics',
    status: 200,
    shows: () => ({
      payments: 1,
      revenue: [
        { currency: 'USD', grossAmountCents: 0 },
        { currency: 'EUR', grossAmountCents: 1900 },
      ],
    }),
  },
  'POST /v3/webhook-endpoints': {
    path: () => '/v3/webhook-endpoints',
    body: () => ({ url: 'http://127.0.0.1:9/hook', enabledEvents: ['payment.succeeded'] }),
    status: 201,
    shows: () => ({
      id: expect.stringMatching(/^whep_/),
      secret: expect.stringMatching(/^whsec_/),
      isActive: true,
    }),
  },
  'PATCH /v3/webhook-endpoints/:': {
    path: ({ payment }) => `/v3/webhook-endpoints/${payment.endpoint}`,
    body: () => ({ isActive: false }),
    status: 200,
    shows: () => ({ isActive: false, url: 'http://127.0.0.1:9/hook' }),
  },
  'POST /v3/webhook-endpoints/:/rotate-secret': {
    path: ({ payment }) => `/v3/webhook-endpoints/${payment.endpoint}/rotate-secret`,
    status: 200,
    shows: () => ({ secret: expect.stringMatching(/^whsec_/) }),
  },
  'GET /v3/notification-preferences': {
    path: () => '/v3/notification-preferences',
    status: 200,
    shows: () => ({ merchantOfRecord: false }),
  },
  'GET /health': {
    path: () => '/health',
    status: 200,
    bare: ({ body }) => expect(body).toEqual({ status: 'ok' }),
  },

  'POST /api/product/create': {
    path: () => '/api/product/create',
    body: () => ({ ...ONE_TIME, platform: 'MESSENGER', messengerGroupId: '-1001', acceptedAssets: ['usdc'] }),
    status: 201,
    shows: () => ({
      status: 'PENDING',
      messengerGroupId: '-1001',
      acceptedAssets: [{ symbol: 'USDC', decimals: 6 }],
      acceptedChains: expect.arrayContaining([{ id: 8453, name: 'Base' }]),
    }),
  },
  'PATCH /api/product/:': {
    path: ({ subscription }) => `/api/product/${subscription.productId}`,
    body: () => ({ priceCents: '2500' }),
    status: 200,
    shows: () => ({ priceCents: '2500' }),
  },
  'GET /api/product/all': { path: () => '/api/product/all', status: 200, shows: () => isPage },
  'GET /api/product/:': {
    path: ({ subscription }) => `/api/product/${subscription.productId}`,
    status: 200,
    shows: () => ({ name: 'Monthly' }),
  },
  'POST /api/payment/create': {
    path: () => '/api/payment/create',
    body: ({ payment }) => ({
      productId: payment.productId,
      metadata: { a: 1 },
      customFields: [{ key: 'k', label: 'L', type: 'input' }],
    }),
    status: 201,
    shows: () => ({
      paymentId: expect.stringMatching(/^pay_/),
      paymentUrl: expect.stringContaining('/checkout/pay_'),
      metadata: { a: 1 },
      customFields: [{ key: 'k', label: 'L', type: 'input' }],
    }),
  },
  'POST /api/payment/:/cancel': {
    path: ({ payment }) => `/api/payment/${payment.id}/cancel`,
    body: () => ({ reason: 'changed my mind' }),
    status: 200,
    shows: () => ({ status: 'CANCELED', canceledAt: expect.any(String), cancelReason: 'changed my mind' }),
  },
  'GET /api/payment': { path: () => '/api/payment', status: 200, shows: () => isPage },
  'GET /api/payment/:': {
    path: ({ payment }) => `/api/payment/${payment.id}`,
    status: 200,
    shows: ({ payment }) => ({
      id: payment.id,
      status: 'INITIATED',
      isSandbox: true,
      customerEmail: 'ada@example.com',
    }),
  },
  'POST /api/subscription/create': {
    path: () => '/api/subscription/create',
    body: ({ subscription }) => ({ productId: subscription.productId }),
    status: 201,
    shows: () => ({ paymentId: expect.any(String), subscriptionId: expect.stringMatching(/^sub_/) }),
  },
  'GET /api/subscription': { path: () => '/api/subscription', status: 200, shows: () => isPage },
  'GET /api/subscription/:': {
    path: ({ subscription }) => `/api/subscription/${subscription.id}`,
    status: 200,
    shows: ({ subscription }) => ({
      status: 'ACTIVE',
      productId: subscription.productId,
      expiresAt: expect.any(String),
    }),
  },
  'DELETE /api/subscription/:': {
    path: ({ subscription }) => `/api/subscription/${subscription.id}`,
    status: 200,
    shows: () => ({ status: 'CANCELED' }),
  },
  'POST /api/refund/:': {
    path: ({ subscription }) => `/api/refund/${subscription.payment.id}`,
    body: () => ({ amountInCents: 500 }),
    status: 200,
    shows: () => ({ status: 'PARTIALLY_REFUNDED', refundedAmountCents: 500 }),
  },
  'POST /api/discount/create': {
    path: () => '/api/discount/create',
    body: () => ({ code: 'SPRING', percentOff: 10 }),
    status: 201,
    shows: () => ({ code: 'SPRING', percentOff: 10 }),
  },
  'GET /api/customer': { path: () => '/api/customer', status: 200, shows: () => isPage },
  'GET /api/customer/search': {
    path: () => '/api/customer/search?email=ada@example.com',
    status: 200,
    shows: () => ({
      email: 'ada@example.com',
      payments: expect.any(Array),
      pagination: { total: 2, totalPages: 1 },
    }),
  },
  'GET /api/customer/:': {
    path: ({ subscription }) => `/api/customer/${subscription.customerId}`,
    status: 200,
    shows: () => ({ email: 'ada@example.com' }),
  },
}

/** A subscription with a queued downgrade, a payment to be paid, an endpoint, a saved card. */
async function begin(): Promise<Story> {
  const service = await startService()
  const subscription = await subscribe(service)
  const payment = await createPayment(service)
  const cheaper = await createProduct(service, { frequencyInDays: 30, priceCents: '900' })
  await service.data(`POST /v3/subscriptions/${subscription.id}/change-plan`, { productId: cheaper })
  const { id: endpoint } = await service.data('POST /v3/webhook-endpoints', {
    url: 'http://127.0.0.1:9/hook',
    isActive: false,
  })
  const methods = await service.data(`GET /v3/customers/${subscription.customerId}/payment-methods`)
  return { service, subscription, payment: { ...payment, cheaper, endpoint, saved: methods.items[0].id } }
}

describe('every operation', () => {
  it('has a row here', () => {
    expect(Object.keys(ROWS).sort()).toEqual([...operationsOf('v3'), ...operationsOf('v2')].sort())
  })

  it.each(Object.entries(ROWS))(
    '%s does what its document says',
    async (name, { path, body, status, shows, bare }) => {
      const story = await begin()
      const request = `${name.split(' ')[0]} ${path(story)}`
      const answer = await story.service.call(request, body?.(story))
      expect(answer.status, JSON.stringify(answer.body)).toBe(status)
      if (bare !== undefined) return bare(answer)
      expect(answer.body).toMatchObject({ success: true, data: shows?.(story) })
    },
  )

  it.each(Object.entries(ROWS).filter(([name]) => name !== 'GET /health'))(
    '%s is refused without the key',
    async (name, { path, body }) => {
      const story = await begin()
      const request = `${name.split(' ')[0]} ${path(story)}`
      const answer = await story.service.call(request, body?.(story), {
        'X-Service-Api-Key': 'sk_sandbox_other',
      })
      expect(answer).toMatchObject({ status: 401, body: { success: false, error: 'UNAUTHORIZED' } })
    },
  )
})

describe('a record', () => {
  it.each([
    [
      'a subscription',
      'v3',
      'Fields of a subscription',
      (story: Story) => `/v3/subscriptions/${story.subscription.id}`,
    ],
    ['a payment', 'v3', 'Fields of a payment', (story: Story) => `/v3/payments/${story.payment.id}`],
    [
      'a product of v2',
      'v2',
      'Fields of a product',
      (story: Story) => `/api/product/${story.subscription.productId}`,
    ],
    [
      'a payment of v2',
      'v2',
      'Fields of a payment list item',
      (story: Story) => `/api/payment/${story.payment.id}`,
    ],
  ] as const)('of %s has every field of its document', async (_name, document, heading, path) => {
    const story = await begin()
    const shown = await story.service.data(`GET ${path(story)}`)
    const onlyOf = /^(community|messenger)/
    const fields = namesIn(document, heading).filter((name) => !onlyOf.test(name))
    expect(fields.filter((name) => !(name in shown))).toEqual([])
    expect(fields.length).toBeGreaterThan(12)
  })

  it('of a queued plan change, and of an endpoint, has every field of its document', async () => {
    const { service, subscription, payment } = await begin()
    const { scheduledChange } = await service.data(`GET /v3/subscriptions/${subscription.id}`)
    expect(Object.keys(scheduledChange).sort()).toEqual(
      [...namesIn('v3', 'Fields of a scheduled change')].sort(),
    )
    const endpoint = await service.data(`PATCH /v3/webhook-endpoints/${payment.endpoint}`, {
      description: 'x',
    })
    expect(Object.keys(endpoint).sort()).toEqual([...namesIn('v3', 'Fields of a webhook endpoint')].sort())
  })
})

describe('a list of v3', () => {
  it('goes on at its cursor, newest first, and ends with none', async () => {
    const service = await startService()
    const made: string[] = []
    for (let index = 0; index < 5; index += 1)
      made.unshift(await createProduct(service, { name: `p${index}` }))
    const first = await service.data('GET /v3/products?limit=3')
    expect(first.pagination).toEqual({ nextCursor: expect.any(String), hasMore: true })
    const rest = await service.data(`GET /v3/products?limit=3&cursor=${first.pagination.nextCursor}`)
    expect(rest.pagination).toEqual({ nextCursor: null, hasMore: false })
    expect([...first.items, ...rest.items].map(({ id }: Json) => id)).toEqual(made)
  })

  it.each(['limit=0', 'limit=101', 'limit=x', 'cursor=!', 'cursor=YWJj'])('refuses %s', async (query) => {
    const service = await startService()
    const { status, body } = await service.call(`GET /v3/payments?${query}`)
    expect(status).toBe(422)
    expect(body).toMatchObject({
      error: 'VALIDATION_ERROR',
      data: { fieldErrors: [{ field: query.split('=')[0], message: expect.any(String) }] },
    })
  })
})

describe('a list of v2', () => {
  it('has pages, and filters payments by status, email and asset', async () => {
    const service = await startService()
    const { id, productId } = await createPayment(service)
    await service.pay(id, { method: 'CRYPTO', crypto: { chainId: 8453, assetId: 'ETH' } })
    await service.data('POST /v3/payments', { productId, customerEmail: 'eve@example.com' })
    const found = async (query: string) =>
      (await service.data(`GET /api/payment?${query}`)).data.map((one: Json) => one.status)
    expect(await found('limit=1&page=2')).toEqual(['TX_SUCCESS'])
    expect(await found('status=INITIATED')).toEqual(['INITIATED'])
    expect(await found('customerEmail=ada@example.com')).toEqual(['TX_SUCCESS'])
    expect(await found('currency=eth')).toEqual(['TX_SUCCESS'])
    expect(await found('currency=BNB')).toEqual([])
  })

  it.each(['limit=0', 'limit=26', 'page=0', 'status=PAID'])('refuses %s', async (query) => {
    const service = await startService()
    expect(await service.refusal(`GET /api/payment?${query}`)).toBe('422 VALIDATION_ERROR')
  })
})

describe('the key', () => {
  it('of a live account is refused', async () => {
    const service = await startService()
    const { status, body } = await service.call('GET /v3/products', undefined, {
      'X-Service-Api-Key': 'sk_live_x',
    })
    expect([status, body.error]).toEqual([403, 'ENVIRONMENT_MISMATCH'])
  })
})

describe('the sandbox', () => {
  it('gives the same ids and events for the same seed and the same calls', async () => {
    const play = async (seed: number) => {
      const service = await startService({ seed, from: START })
      await subscribe(service)
      await service.advance('65d')
      return (await service.call('GET /v3/payments')).body
    }
    expect(await play(3)).toEqual(await play(3))
    expect(await play(3)).not.toEqual(await play(4))
  })
})
