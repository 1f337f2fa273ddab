import { describe, expect, it } from 'vitest'
import { createPaymentsApi, type Listed } from '../../src/payments-api/client.js'
import {
  createPayment,
  createProduct,
  KEY,
  MONTHLY,
  SECRET,
  type Service,
  startReceiver,
  startService,
  subscribe,
} from '../sandbox/service.js'

/** The API of a sandbox, asked over HTTP. */
function apiOf(
  { url }: Pick<Service, 'url'>,
  more: { readonly apiKey?: string; readonly legacy?: boolean } = {},
) {
  return createPaymentsApi({
    environment: 'sandbox',
    baseUrl: url,
    apiKey: KEY,
    clock: Date.now,
    random: () => 0,
    sleep: async () => {},
    ...more,
  })
}

/** The ids of a whole list, page by page. */
async function idsIn<Place>(
  { pages }: Listed<{ readonly id: string }, Place>,
  limit: number,
): Promise<readonly (readonly string[])[]> {
  const found: string[][] = []
  for await (const { items, unreadable } of pages({ limit })) {
    expect(unreadable).toEqual([])
    found.push(items.map(({ record }) => record.id))
  }
  return found
}

describe('the payments API, asked of the sandbox', () => {
  it('shows subscriptions, payments and customers one by one, each with all that was read', async () => {
    const service = await startService()
    const { id, customerId, productId, payment } = await subscribe(service)
    const api = apiOf(service)

    const subscription = await api.subscriptions.get(id)
    expect(subscription.record).toMatchObject({
      id,
      customerId,
      productId,
      status: 'ACTIVE',
      currentCycle: 1,
    })
    expect(subscription.raw).toEqual(await service.data(`GET /v3/subscriptions/${id}`))
    const paid = await api.payments.get(payment.id)
    expect(paid.record).toMatchObject({ id: payment.id, subscriptionId: id, status: 'COMPLETED' })
    expect(paid.record.statusTimeline.at(-1)).toMatchObject({ status: 'COMPLETED' })
    expect(paid.raw).toEqual(await service.data(`GET /v3/payments/${payment.id}`))
    const customer = await api.customers.get(customerId)
    expect(customer.record).toMatchObject({ id: customerId, email: 'ada@example.com' })
    expect(customer.raw).toEqual(await service.data(`GET /v3/customers/${customerId}`))
  })

  it('shows the pending change of a subscription', async () => {
    const service = await startService()
    const { id } = await subscribe(service)
    const cheaper = await createProduct(service, { ...MONTHLY, priceCents: '900' })
    await service.data(`POST /v3/subscriptions/${id}/change-plan`, { productId: cheaper })
    const { record } = await apiOf(service).subscriptions.get(id)
    expect(record.scheduledChange).toMatchObject({
      type: 'DOWNGRADE',
      targetPriceId: cheaper,
      appliedAt: null,
    })
  })

  it('reads whole lists, page by page, and finds customers by email', async () => {
    const service = await startService()
    const made: string[] = []
    for (const n of [1, 2, 3, 4, 5]) {
      made.unshift((await createPayment(service, { customerEmail: `c${n}@example.com` })).id)
    }
    const api = apiOf(service)
    expect(await idsIn(api.payments, 2)).toEqual([made.slice(0, 2), made.slice(2, 4), made.slice(4)])
    expect(await idsIn(api.payments, 5)).toEqual([made])
    expect((await idsIn(api.customers, 100)).flat()).toHaveLength(5)
    expect(await idsIn(api.subscriptions, 100)).toEqual([[]])

    const first = await api.payments.list({ limit: 2 })
    const second = await api.payments.list({ limit: 2, from: first.next })
    expect(second.items.map(({ record }) => record.id)).toEqual(made.slice(2, 4))
    const found = await api.customers.findByEmail('c3@example.com')
    expect(found.items.map(({ record }) => record.email)).toEqual(['c3@example.com'])
  })

  it('lists chargebacks of v2 where that is configured, and not elsewhere', async () => {
    const service = await startService()
    const charged: string[] = []
    for (const n of [1, 2, 3]) {
      const { id } = await createPayment(service, { customerEmail: `c${n}@example.com` })
      await service.data(`POST /sandbox/payments/${id}/pay`, {})
      if (n !== 2) await service.data(`POST /sandbox/payments/${id}/chargeback`, {})
      if (n !== 2) charged.unshift(id)
    }
    expect(apiOf(service).legacy).toBeNull()
    const { legacy } = apiOf(service, { legacy: true })
    if (legacy === null) throw new Error('v2 is configured')
    const chargebacks = legacy.payments.withStatus('CHARGEBACK')
    expect(await idsIn(chargebacks, 1)).toEqual(charged.map((id) => [id]))
    expect((await chargebacks.list()).items.map(({ record }) => record.status)).toEqual([
      'CHARGEBACK',
      'CHARGEBACK',
    ])
    const { record, raw } = await legacy.payments.get(charged[0] ?? '')
    expect(record).toMatchObject({ id: charged[0], status: 'CHARGEBACK', isSandbox: true })
    expect(raw).toHaveProperty('customerEmail', 'c3@example.com')
  })

  it('creates a webhook endpoint once, however often it is sent with one key, and changes and rotates it', async () => {
    const service = await startService()
    const { url } = await startReceiver()
    const { webhookEndpoints } = apiOf(service)
    const once = { idempotencyKey: 'register-1' }
    const created = await webhookEndpoints.create({ url, enabledEvents: ['payment.succeeded'] }, once)
    const again = await webhookEndpoints.create({ url, enabledEvents: ['payment.succeeded'] }, once)
    expect(again.raw).toEqual(created.raw)
    expect(created.record.secret).toMatch(/^whsec_/)
    expect(created.record.secret).not.toBe(SECRET)
    await expect(webhookEndpoints.create({ url }, once)).rejects.toMatchObject({
      code: 'payments_api_refused',
      kind: 'refused',
      status: 422,
      serviceCode: 'IDEMPOTENCY_KEY_CONFLICT',
    })

    const { id } = created.record
    const { record } = await webhookEndpoints.update(id, { isActive: false, enabledEvents: [] })
    expect(record).toMatchObject({ id, url, isActive: false, enabledEvents: [] })
    const rotated = await webhookEndpoints.rotateSecret(id, { idempotencyKey: 'rotate-1' })
    expect(rotated.record.secret).toMatch(/^whsec_/)
    expect(rotated.record.secret).not.toBe(created.record.secret)
    await expect(webhookEndpoints.update('whep_none', { isActive: true })).rejects.toMatchObject({
      kind: 'not_found',
    })
    await expect(
      webhookEndpoints.create({ url: 'nowhere' }, { idempotencyKey: 'register-2' }),
    ).rejects.toMatchObject({ serviceCode: 'VALIDATION_ERROR', issues: [{ path: 'url' }] })
  })

  it('tells an unknown id, an id that is none, a cursor that does not count and a wrong key apart', async () => {
    const service = await startService()
    const api = apiOf(service)
    await expect(api.subscriptions.get('sub_none')).rejects.toMatchObject({
      kind: 'not_found',
      code: 'payments_api_refused',
      serviceCode: 'SUBSCRIPTION_NOT_FOUND',
      message: expect.stringContaining('GET /v3/subscriptions/sub_none (404 SUBSCRIPTION_NOT_FOUND)'),
    })
    for (const id of ['', '.', '..', 'a\nb', 'x'.repeat(256)])
      await expect(api.payments.get(id)).rejects.toMatchObject({ kind: 'not_found', status: null })
    await expect(api.payments.get('../products')).rejects.toMatchObject({ kind: 'not_found', status: 404 })
    await expect(api.payments.list({ from: 'expired' })).rejects.toMatchObject({ kind: 'cursor_refused' })
    await expect(apiOf(service, { apiKey: `${KEY}_old` }).payments.list()).rejects.toMatchObject({
      kind: 'key_refused',
      status: 401,
      message: expect.stringContaining('Check provider.sandbox.apiKey'),
    })
  })

  it('comes through failures that end, and tells those that do not', async () => {
    const service = await startService()
    const { id } = await createPayment(service)
    const api = apiOf(service)
    for (const code of ['RATE_LIMITED', 'INTERNAL_SERVER_ERROR']) {
      await service.data('POST /sandbox/faults', { answers: [{ code, times: 3 }] })
      expect((await api.payments.get(id)).record.id).toBe(id)
    }
    await service.data('POST /sandbox/faults', { answers: [{ code: 'RATE_LIMITED', times: 100 }] })
    await expect(api.payments.get(id)).rejects.toMatchObject({
      kind: 'rate_limited',
      code: 'payments_api_unavailable',
      serviceCode: 'RATE_LIMITED',
    })
  })
})
