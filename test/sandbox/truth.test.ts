import { describe, expect, it } from 'vitest'
import {
  createPayment,
  createProduct,
  day,
  MONTHLY,
  paymentsOf,
  type Service,
  startService,
  subscribe,
} from './service.js'

/** The products that anybody has access to. */
const access = async (service: Service, at?: string): Promise<readonly string[]> =>
  (await service.truth(at)).map(({ productId }) => productId)

const refund = (service: Service, id: string) => service.data(`POST /sandbox/payments/${id}/refund`)

describe('the truth about a one-time payment', () => {
  it.each([
    ['unpaid', [], [], false],
    ['authorized', [{ outcome: 'success' }], [], true],
    ['declined', [{ outcome: 'soft_decline' }], [], false],
    ['captured', [{}], ['capture'], true],
    ['voided', [{}], ['void'], false],
    ['refunded', [{}], ['capture', 'refund'], false],
    ['charged back', [{}], ['capture', 'chargeback'], false],
    ['paid by crypto', [{ method: 'CRYPTO' }], [], true],
    ['being confirmed', [{ method: 'CRYPTO', confirmations: 1 }], [], false],
  ])('that is %s', async (_name, pays, acts, isActive) => {
    const service = await startService()
    const { id, productId } = await createPayment(service, { card: { capture: 'manual' } })
    for (const how of pays) await service.pay(id, how)
    for (const act of acts) await service.data(`POST /sandbox/payments/${id}/${act}`)
    expect(await access(service)).toEqual(isActive ? [productId] : [])
  })

  it('refunded in part, or paid twice and refunded once, still gives access', async () => {
    const service = await startService()
    const { id, productId } = await createPayment(service)
    await service.pay(id)
    await service.data(`POST /sandbox/payments/${id}/refund`, { amountInCents: 100 })
    expect(await access(service)).toEqual([productId])
    const again = await service.data('POST /v3/payments', { productId, customerEmail: 'ada@example.com' })
    await service.pay(again.id)
    await refund(service, id)
    expect(await access(service)).toEqual([productId])
  })
})

describe('the truth about a subscription', () => {
  it('knows every instant that was', async () => {
    const service = await startService()
    const { id, productId } = await subscribe(service)
    await service.advance('40d')
    await service.data(`POST /v3/subscriptions/${id}/cancel`)
    await service.advance('10d')
    expect(await access(service, day(-1))).toEqual([])
    expect(await access(service, day(20))).toEqual([productId])
    expect(await access(service, day(39))).toEqual([productId])
    expect(await access(service, day(41))).toEqual([])
    expect(await service.refusal(`GET /sandbox/truth?at=${day(60)}`)).toBe('422 VALIDATION_ERROR')
  })

  it('keeps access until a cancellation takes effect, and through dunning and grace', async () => {
    const service = await startService()
    const card = await subscribe(service)
    await service.data(`POST /v3/subscriptions/${card.id}/cancel`, { atPeriodEnd: true })
    const dunned = await subscribe(service, { customerEmail: 'b@example.com' })
    await service.data(`POST /sandbox/customers/${dunned.customerId}/card`, { outcome: 'soft_decline' })
    const crypto = await subscribe(service, { customerEmail: 'c@example.com', card: undefined, crypto: {} })
    await service.pay(crypto.payment.id)
    await service.advance('70d')
    const sorted = (ids: readonly string[]) => [...ids].sort()
    const all = [card.productId, dunned.productId, crypto.productId]
    expect(sorted(await access(service, day(29)))).toEqual(sorted(all))
    expect(sorted(await access(service, day(33)))).toEqual(sorted([dunned.productId, crypto.productId]))
    expect(await access(service, day(45))).toEqual([dunned.productId])
    expect(await access(service, day(61))).toEqual([])
  })

  it('ends with the refund of the current cycle, until the next one is paid', async () => {
    const service = await startService()
    const { id, productId } = await subscribe(service)
    await service.advance('35d')
    const [second, first] = await paymentsOf(service, id)
    await refund(service, first.id)
    expect(await access(service)).toEqual([productId])
    await refund(service, second.id)
    expect(await access(service)).toEqual([])
    await service.advance('30d')
    expect(await access(service)).toEqual([productId])
  })

  it('goes back to the plan before when the charge of an upgrade is refunded, until a cycle of the new one is paid', async () => {
    const service = await startService()
    const { id, productId } = await subscribe(service)
    const target = await createProduct(service, { ...MONTHLY, priceCents: '4900' })
    await service.advance('10d')
    const { payment } = await service.data(`POST /v3/subscriptions/${id}/change-plan`, { productId: target })
    expect(await access(service)).toEqual([target])
    await refund(service, payment.id)
    expect(await access(service)).toEqual([productId])
    await service.advance('30d')
    expect(await access(service)).toEqual([target])
  })

  it('is back with the charge of an upgrade that is paid after the refund of the cycle, while that stands', async () => {
    const service = await startService()
    const { id, payment: cycle } = await subscribe(service)
    const target = await createProduct(service, { ...MONTHLY, priceCents: '4900' })
    const upgrade = async (productId: string) =>
      (await service.data(`POST /v3/subscriptions/${id}/change-plan`, { productId })).payment
    await service.advance('10d')
    await refund(service, cycle.id)
    expect(await access(service)).toEqual([])
    const charge = await upgrade(target)
    expect(await access(service)).toEqual([target])
    await refund(service, charge.id)
    expect(await access(service)).toEqual([])
    const dearer = await createProduct(service, { ...MONTHLY, priceCents: '9900' })
    await upgrade(dearer)
    expect(await access(service)).toEqual([dearer])
  })

  it('moves with a downgrade at its renewal, and with a swap that cost nothing', async () => {
    const service = await startService()
    const { id, productId } = await subscribe(service)
    const cheaper = await createProduct(service, { ...MONTHLY, priceCents: '900' })
    await service.data(`POST /v3/subscriptions/${id}/change-plan`, { productId: cheaper })
    await service.advance('20d')
    expect(await access(service)).toEqual([productId])
    await service.advance('20d')
    expect(await access(service)).toEqual([cheaper])
    await service.data(`POST /v3/subscriptions/${id}/change-plan`, { productId, proration: 'none' })
    expect(await access(service)).toEqual([productId])
  })

  it('ends with its fixed term', async () => {
    const service = await startService()
    const { productId } = await subscribe(service, { totalCycles: 2 })
    await service.advance('70d')
    expect(await access(service, day(59))).toEqual([productId])
    expect(await access(service, day(61))).toEqual([])
  })
})
