import { describe, expect, it } from 'vitest'
import { createPayment, type Json, startHeard } from './service.js'

const statuses = (payment: Json): readonly string[] =>
  payment.statusTimeline.map(({ status }: Json) => status)

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
})
