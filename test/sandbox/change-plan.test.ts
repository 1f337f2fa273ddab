import { describe, expect, it } from 'vitest'
import { rowsOf } from './documents.js'
import {
  createProduct,
  delivered,
  type Json,
  MONTHLY,
  paymentsOf,
  type Service,
  startHeard,
  startService,
  subscribe,
  subscriptionOf,
} from './service.js'

const plan = (service: Service, priceCents: string, more: object = {}): Promise<string> =>
  createProduct(service, { ...MONTHLY, name: `for ${priceCents}`, priceCents, ...more })

const change = (service: Service, id: string, body: object): Promise<Json> =>
  service.data(`POST /v3/subscriptions/${id}/change-plan`, body)

describe('a change of plan', () => {
  it('rule 1: is an upgrade to a higher price and a downgrade to a lower one, whatever its cadence', async () => {
    const service = await startService()
    const { id } = await subscribe(service)
    const yearlyCheaper = await plan(service, '1500', { frequencyInDays: 365 })
    const down = await change(service, id, { productId: yearlyCheaper })
    expect(down.scheduledChange).toMatchObject({
      type: 'DOWNGRADE',
      targetPriceId: yearlyCheaper,
      appliedAt: null,
    })
    const up = await change(service, id, { productId: await plan(service, '2000', { frequencyInDays: 7 }) })
    expect(up.scheduledChange).toMatchObject({ type: 'UPGRADE', appliedAt: expect.any(String) })
  })

  it('rule 2: needs an active, recurring target in the same currency', async () => {
    const service = await startService()
    const { id, productId } = await subscribe(service)
    const refused = (target: string) =>
      service.refusal(`POST /v3/subscriptions/${id}/change-plan`, { productId: target })
    const gone = await plan(service, '3000')
    await service.call(`DELETE /v3/products/${gone}`)
    expect(await refused(gone)).toBe('404 TARGET_PRODUCT_NOT_FOUND')
    expect(await refused(await createProduct(service))).toBe('422 TARGET_PRODUCT_NOT_RECURRING')
    expect(await refused(await plan(service, '3000', { currency: 'USD' }))).toBe(
      '422 PLAN_CHANGE_CURRENCY_MISMATCH',
    )
    expect(await refused(productId)).toBe('409 SAME_PLAN')
  })

  it('rule 3: charges the prorated difference for the rest of the cycle, where the cadence stays', async () => {
    const service = await startService()
    const { id } = await subscribe(service)
    const due = (await subscriptionOf(service, id)).currentCycleDueAt
    await service.advance('20d')
    const { payment, subscription } = await change(service, id, { productId: await plan(service, '4900') })
    expect(payment).toMatchObject({ priceCents: '1000', status: 'COMPLETED' })
    expect(subscription).toMatchObject({ currentCycleDueAt: due, currentCycle: 1 })
  })

  it('rule 3: charges the full price and begins a new cycle, where the cadence differs', async () => {
    const service = await startService()
    const { id } = await subscribe(service)
    await service.advance('20d')
    const yearly = await plan(service, '19000', { frequencyInDays: 365 })
    const { payment } = await change(service, id, { productId: yearly })
    expect(payment).toMatchObject({ priceCents: '19000' })
    expect((await subscriptionOf(service, id)).currentCycleDueAt).toMatch(/^2027-01-21T00:00:00/)
    await service.advance('300d')
    expect(await paymentsOf(service, id)).toHaveLength(2)
    await service.advance('70d')
    expect(await subscriptionOf(service, id)).toMatchObject({ productId: yearly, currentCycle: 2 })
  })

  it('rule 4: swaps when the charge completes, and the webhook confirms it', async () => {
    const service = await startHeard()
    const { id, productId } = await subscribe(service)
    service.receiver.take()
    const target = await plan(service, '4900')
    const { status, body } = await service.call(`POST /v3/subscriptions/${id}/change-plan`, {
      productId: target,
    })
    expect([status, body.data.applied, body.data.checkout]).toEqual([202, false, undefined])
    await delivered(service)
    expect(service.receiver.types()).toEqual([
      'payment.authorized',
      'payment.succeeded',
      'payment.completed',
      'subscription.updated',
    ])
    expect(service.receiver.received.at(-1)?.event.data.product.id).toBe(target)
    expect(await subscriptionOf(service, id)).toMatchObject({ productId: target, scheduledChange: null })
    expect(productId).not.toBe(target)
  })

  it('rule 5: asks the buyer where the issuer wants 3DS, for the saved card too, and swaps once they accept', async () => {
    const service = await startHeard()
    const { id, customerId, productId } = await subscribe(service)
    await service.data(`POST /sandbox/customers/${customerId}/card`, { outcome: '3ds_required' })
    service.receiver.take()
    const target = await plan(service, '4900')
    const { payment, checkout, applied } = await change(service, id, { productId: target })
    expect(payment.status).toBe('PENDING_3DS')
    expect(applied).toBe(false)
    const url = `${service.url}/checkout/${payment.id}`
    expect(checkout).toEqual({
      ...{ providerPaymentId: expect.any(String), clientSecret: expect.any(String) },
      ...{ threeDsChallengeUrl: url, redirectUrl: url },
    })
    expect(await subscriptionOf(service, id)).toMatchObject({
      productId,
      scheduledChange: { type: 'UPGRADE', appliedAt: null },
    })
    await service.pay(payment.id)
    expect(await subscriptionOf(service, id)).toMatchObject({ productId: target, scheduledChange: null })
    expect(service.receiver.types().at(-1)).toBe('subscription.updated')
  })

  it.each(['3ds_failed', 'no answer'])('rule 5: is called off after %s', async (answer) => {
    const service = await startService()
    const { id, productId } = await subscribe(service)
    const body = { productId: await plan(service, '4900'), card: { tokenizedInstrument: 'tok_3ds' } }
    const { payment } = await change(service, id, body)
    if (answer === '3ds_failed') await service.pay(payment.id, { outcome: '3ds_failed' })
    else await service.advance('1h')
    expect(await subscriptionOf(service, id)).toMatchObject({ productId, scheduledChange: null })
    expect(
      (await service.call(`POST /v3/subscriptions/${id}/change-plan`, { ...body, card: undefined })).status,
    ).toBe(202)
  })

  it('rule 6: without proration swaps at once and charges nothing', async () => {
    const service = await startHeard()
    const { id } = await subscribe(service)
    service.receiver.take()
    const target = await plan(service, '4900')
    const answer = await change(service, id, { productId: target, proration: 'none' })
    expect(answer).toMatchObject({
      applied: true,
      subscription: { productId: target },
      scheduledChange: { appliedAt: expect.any(String) },
    })
    expect(answer.payment).toBeUndefined()
    await delivered(service)
    expect(service.receiver.types()).toEqual(['subscription.updated'])
  })

  it('rule 7: downgrades at the end of the period, and bills the lower price from there', async () => {
    const service = await startHeard()
    const { id, productId } = await subscribe(service)
    const due = (await subscriptionOf(service, id)).currentCycleDueAt
    const target = await plan(service, '900')
    const answer = await change(service, id, { productId: target, effective: 'now' })
    expect(answer).toMatchObject({
      applied: false,
      scheduledChange: { type: 'DOWNGRADE', scheduledFor: due },
    })
    expect(answer.payment).toBeUndefined()
    await service.advance('29d')
    expect(await subscriptionOf(service, id)).toMatchObject({ productId })
    service.receiver.take()
    await service.advance('2d')
    expect(service.receiver.types().slice(-2)).toEqual(['subscription.updated', 'subscription.renewed'])
    expect(await subscriptionOf(service, id)).toMatchObject({ productId: target, scheduledChange: null })
    expect((await paymentsOf(service, id))[0]).toMatchObject({ priceCents: '900', productId: target })
  })

  it('rule 8: computes VAT by the customer at the time of the charge', async () => {
    const service = await startService({ merchantOfRecord: true })
    const { id, customerId } = await subscribe(service, {
      customerCountry: 'DE',
      product: { taxInclusive: false },
    })
    await service.data(`PATCH /sandbox/customers/${customerId}`, { country: 'FR' })
    const { payment } = await change(service, id, {
      productId: await plan(service, '2900', { taxInclusive: false }),
    })
    expect(payment).toMatchObject({
      priceCents: '1000',
      vatRateBps: 2000,
      vatAmountCents: 200,
      grossAmountCents: 1200,
    })
  })

  it('of an upgrade can wait for the end of the period', async () => {
    const service = await startService()
    const { id } = await subscribe(service)
    const target = await plan(service, '4900')
    const answer = await change(service, id, { productId: target, effective: 'period_end' })
    expect(answer).toMatchObject({ applied: false, scheduledChange: { type: 'UPGRADE' } })
    await service.advance('31d')
    expect(await subscriptionOf(service, id)).toMatchObject({ productId: target })
    expect((await paymentsOf(service, id))[0].priceCents).toBe('4900')
  })

  it('takes the place of the one that was queued before', async () => {
    const service = await startService()
    const { id } = await subscribe(service)
    const first = await change(service, id, { productId: await plan(service, '900') })
    const cheapest = await plan(service, '700')
    await change(service, id, { productId: cheapest })
    const again = await service.refusal(`POST /v3/subscriptions/${id}/cancel-plan-change`, {
      scheduledChangeId: first.scheduledChange.id,
    })
    expect(again).toBe('404 NO_SCHEDULED_PLAN_CHANGE')
    await service.advance('31d')
    expect(await subscriptionOf(service, id)).toMatchObject({ productId: cheapest })
  })

  it('waits with the renewal that is declined', async () => {
    const service = await startService()
    const { id, customerId, productId } = await subscribe(service)
    const target = await plan(service, '900')
    await change(service, id, { productId: target })
    await service.data(`POST /sandbox/customers/${customerId}/card`, { outcome: 'soft_decline' })
    await service.advance('30d')
    await service.advance('1h')
    expect(await subscriptionOf(service, id)).toMatchObject({
      productId,
      status: 'PAST_DUE',
      scheduledChange: { appliedAt: null },
    })
    await service.data(`POST /sandbox/customers/${customerId}/card`, { outcome: 'success' })
    await service.advance('1d')
    expect(await subscriptionOf(service, id)).toMatchObject({ productId: target, status: 'ACTIVE' })
  })
})

describe('a queued change', () => {
  it('is called off, by its id or without', async () => {
    const service = await startService()
    const { id, productId } = await subscribe(service)
    const { scheduledChange } = await change(service, id, { productId: await plan(service, '900') })
    const path = `POST /v3/subscriptions/${id}/cancel-plan-change`
    expect(await service.refusal(path, { scheduledChangeId: 'ssc_other' })).toBe(
      '404 NO_SCHEDULED_PLAN_CHANGE',
    )
    await service.data(path, { scheduledChangeId: scheduledChange.id })
    expect(await service.refusal(path)).toBe('404 NO_SCHEDULED_PLAN_CHANGE')
    await service.advance('31d')
    expect(await subscriptionOf(service, id)).toMatchObject({ productId, currentCycle: 2 })
  })

  it('that is charged, or being charged, is not', async () => {
    const service = await startService()
    const { id } = await subscribe(service)
    const body = { productId: await plan(service, '4900'), card: { tokenizedInstrument: 'tok_3ds' } }
    const { payment, scheduledChange } = await change(service, id, body)
    const path = `POST /v3/subscriptions/${id}/cancel-plan-change`
    expect(await service.refusal(path)).toBe('409 PLAN_CHANGE_NOT_CANCELABLE')
    await service.pay(payment.id)
    expect(await service.refusal(path, { scheduledChangeId: scheduledChange.id })).toBe(
      '409 PLAN_CHANGE_NOT_CANCELABLE',
    )
  })
})

it('that a renewal past due has been charged for is not called off', async () => {
  const service = await startService()
  const { id, customerId } = await subscribe(service)
  const target = await plan(service, '900')
  await change(service, id, { productId: target })
  await service.data(`POST /sandbox/customers/${customerId}/card`, { outcome: 'soft_decline' })
  await service.advance('31d')
  const path = `POST /v3/subscriptions/${id}/cancel-plan-change`
  expect(await service.refusal(path)).toBe('409 PLAN_CHANGE_NOT_CANCELABLE')
  await service.data(`POST /sandbox/customers/${customerId}/card`, { outcome: 'success' })
  await service.advance('3d')
  expect(await subscriptionOf(service, id)).toMatchObject({ productId: target, status: 'ACTIVE' })
  expect(await service.truth()).toMatchObject([{ productId: target }])
})

/** How each error of the document's table comes about. */
const ERRORS: Readonly<Record<string, (service: Service) => Promise<string>>> = {
  async UNAUTHORIZED(service) {
    const { status, body } = await service.call(
      'POST /v3/subscriptions/sub_x/change-plan',
      {},
      { 'X-Service-Api-Key': '' },
    )
    return `${status} ${body.error}`
  },
  SUBSCRIPTION_NOT_FOUND: (service) =>
    service.refusal('POST /v3/subscriptions/sub_x/change-plan', { productId: 'pro_x' }),
  async TARGET_PRODUCT_NOT_FOUND(service) {
    const { id } = await subscribe(service)
    return service.refusal(`POST /v3/subscriptions/${id}/change-plan`, { productId: 'pro_x' })
  },
  async SAME_PLAN(service) {
    const { id, productId } = await subscribe(service)
    return service.refusal(`POST /v3/subscriptions/${id}/change-plan`, { productId })
  },
  async SUBSCRIPTION_NOT_MODIFIABLE(service) {
    const { id } = await subscribe(service, { card: undefined })
    return service.refusal(`POST /v3/subscriptions/${id}/change-plan`, {
      productId: await plan(service, '4900'),
    })
  },
  async TARGET_PRODUCT_NOT_RECURRING(service) {
    const { id } = await subscribe(service)
    return service.refusal(`POST /v3/subscriptions/${id}/change-plan`, {
      productId: await createProduct(service),
    })
  },
  async PLAN_CHANGE_CURRENCY_MISMATCH(service) {
    const { id } = await subscribe(service)
    const productId = await plan(service, '4900', { currency: 'USD' })
    return service.refusal(`POST /v3/subscriptions/${id}/change-plan`, { productId })
  },
  async UPGRADE_REQUIRES_CARD(service) {
    const { id } = await subscribe(service)
    const body = { productId: await plan(service, '4900'), useCustomerPaymentMethod: false }
    return service.refusal(`POST /v3/subscriptions/${id}/change-plan`, body)
  },
  async PLAN_CHANGE_DECLINED(service) {
    const { id, productId } = await subscribe(service)
    const body = { productId: await plan(service, '4900'), card: { tokenizedInstrument: 'tok_soft_decline' } }
    const refusal = await service.refusal(`POST /v3/subscriptions/${id}/change-plan`, body)
    expect(await subscriptionOf(service, id)).toMatchObject({
      productId,
      status: 'ACTIVE',
      scheduledChange: null,
    })
    expect((await paymentsOf(service, id))[0]).toMatchObject({
      status: 'DECLINED',
      declineCode: 'insufficient_funds',
    })
    return refusal
  },
}

describe('the errors of a change of plan', () => {
  it('have a case each', () => {
    expect(Object.keys(ERRORS).sort()).toEqual(
      rowsOf('v3', 'Errors of a change of plan')
        .map(([, code]) => code)
        .sort(),
    )
  })

  it.each(rowsOf('v3', 'Errors of a change of plan'))('%s %s: %s', async (status, code = '') => {
    const service = await startService()
    expect(await ERRORS[code]?.(service)).toBe(`${status} ${code}`)
  })

  it('hold for a subscription paid by crypto, which has no card', async () => {
    const service = await startService()
    const { id, payment } = await subscribe(service, { card: undefined, crypto: {} })
    await service.pay(payment.id)
    const productId = await plan(service, '4900')
    expect(await service.refusal(`POST /v3/subscriptions/${id}/change-plan`, { productId })).toBe(
      '422 UPGRADE_REQUIRES_CARD',
    )
    const fresh = { productId, method: 'WALLET_A', card: { tokenizedInstrument: 'tok_good' } }
    expect(await change(service, id, fresh)).toMatchObject({
      payment: { status: 'COMPLETED' },
      subscription: { productId },
    })
  })
})
