import { describe, expect, it } from 'vitest'
import { WIRE_TYPES } from '../../src/provider/event-types.js'
import { namesIn } from './documents.js'
import {
  createPayment,
  delivered,
  type Json,
  SECRET,
  startHeard,
  startReceiver,
  startService,
  subscribe,
} from './service.js'

describe('the types of events', () => {
  it('are those of the documents', () => {
    expect([...WIRE_TYPES.v3].sort()).toEqual([...namesIn('v3', 'Event types')].sort())
    const v2 = [...namesIn('v2', 'Payment events'), ...namesIn('v2', 'Subscription events')]
    expect([...WIRE_TYPES.v2].sort()).toEqual(v2.sort())
  })
})

describe('a delivery', () => {
  it('that is refused is tried again with the same event, and then counts as delivered', async () => {
    const service = await startHeard(['v3'], { retryDelaysMs: [1, 1] })
    const { id } = await createPayment(service)
    await delivered(service)
    service.receiver.take()
    service.receiver.answers.push(500, 503)
    await service.pay(id)
    expect(service.receiver.types()).toEqual([
      ...Array(3).fill('payment.authorized'),
      'payment.succeeded',
      'payment.completed',
    ])
    expect(new Set(service.receiver.received.slice(0, 3).map(({ event }) => event.id)).size).toBe(1)
    const { items } = await service.data('GET /sandbox/deliveries?status=delivered')
    expect(items.at(-2)).toMatchObject({
      type: 'payment.authorized',
      attempts: [{ status: 500 }, { status: 503 }, { status: 200 }],
    })
  })

  it('that nobody takes is tried by the clock, and given up in the end', async () => {
    const service = await startHeard()
    await createPayment(service)
    service.receiver.answers.push(...Array(9).fill(500))
    await delivered(service)
    const statuses = async () =>
      (await service.data('GET /sandbox/deliveries')).items.map(({ status }: Json) => status)
    service.receiver.answers.push(...Array(9).fill(500))
    const second = await createPayment(service)
    await service.pay(second.id)
    expect(await statuses()).toContain('pending')
    await service.advance('2d')
    expect(await statuses()).not.toContain('pending')
    expect(await statuses()).toContain('failed')
  })

  it('is sent on request, whatever became of it', async () => {
    const service = await startHeard()
    await service.faults({ drop: 1 })
    const { id } = await createPayment(service)
    await service.pay(id)
    expect(service.receiver.types()).toEqual([])
    const { items } = await service.data('GET /sandbox/deliveries?status=dropped')
    expect(items).toHaveLength(4)
    const sent = await service.data(`POST /sandbox/deliveries/${items[0].id}/send`)
    expect(sent).toMatchObject({ status: 'delivered', attempts: [{ status: 200 }] })
    expect(service.receiver.types()).toEqual(['payment.completed'])
    expect(await service.refusal('POST /sandbox/deliveries/del_x/send')).toBe('404 NOT_FOUND')
  })

  it('that is sent by hand goes out once, however often its request with a key is repeated', async () => {
    const service = await startHeard()
    await service.faults({ drop: 1 })
    await createPayment(service)
    await delivered(service)
    const [dropped] = (await service.data('GET /sandbox/deliveries')).items
    const send = () =>
      service.data(`POST /sandbox/deliveries/${dropped.id}/send`, {}, { 'Idempotency-Key': 'a' })
    expect(await send()).toMatchObject({ status: 'delivered' })
    expect(await send()).toMatchObject({ status: 'delivered' })
    expect(service.receiver.received).toHaveLength(1)
  })

  it('waits for nobody who says nothing', async () => {
    const service = await startHeard(['v3'], { timeoutMs: 30 })
    service.receiver.answers.push(-1)
    const { id } = await createPayment(service)
    await service.pay(id)
    const { items } = await service.data('GET /sandbox/deliveries')
    expect(items.at(-1)).toMatchObject({
      status: 'pending',
      attempts: [{ status: null, error: expect.stringMatching(/30 ms/) }],
    })
  })
})

describe('an endpoint', () => {
  it('that takes nothing is reported once, and once more when it takes deliveries again', async () => {
    const said: (readonly [string, string | null])[] = []
    const service = await startHeard(['v3'], { onEndpoint: (...what) => said.push(what) })
    const { url, answers } = service.receiver
    answers.push(500, 500)
    await subscribe(service)
    await service.advance('1d')
    expect(said).toEqual([
      [url, 'it answered 500'],
      [url, null],
    ])
  })

  it('gets a secret that is shown at its creation and its rotation alone, and signs with the newest', async () => {
    const service = await startService()
    const receiver = await startReceiver()
    const { id, secret } = await service.data('POST /v3/webhook-endpoints', {
      url: receiver.url,
      secret: SECRET,
    })
    expect(secret).toBe(SECRET)
    expect(await service.data(`PATCH /v3/webhook-endpoints/${id}`, { description: 'x' })).not.toHaveProperty(
      'secret',
    )
    await createPayment(service)
    await delivered(service)
    const rotated = await service.data(`POST /v3/webhook-endpoints/${id}/rotate-secret`)
    expect(rotated.secret).not.toBe(SECRET)
    await createPayment(service, { customerEmail: 'b@example.com' })
    await delivered(service)
    expect(receiver.received.map(({ isSigned }) => isSigned)).toEqual([true, false])
  })

  it('hears what it asked for, while it is active', async () => {
    const service = await startService()
    const receiver = await startReceiver()
    const { id } = await service.data('POST /v3/webhook-endpoints', {
      ...{ url: receiver.url, secret: SECRET, enabledEvents: ['payment.succeeded'] },
    })
    const first = await createPayment(service)
    await service.pay(first.id)
    expect(receiver.types()).toEqual(['payment.succeeded'])
    await service.data(`PATCH /v3/webhook-endpoints/${id}`, { isActive: false })
    const second = await createPayment(service)
    await service.pay(second.id)
    expect(receiver.types()).toEqual(['payment.succeeded'])
    const wrong = { url: receiver.url, enabledEvents: ['PAYMENT_SUCCESS'] }
    expect(await service.refusal('POST /v3/webhook-endpoints', wrong)).toBe('422 VALIDATION_ERROR')
  })
})

describe('faults', () => {
  it('double, damage and delay what they are told to', async () => {
    const service = await startHeard(['v3'], { retryDelaysMs: [1] })
    await service.faults({ duplicate: 1, damage: 1, delay: '2h' })
    const { id } = await createPayment(service, { customerEmail: undefined })
    await service.pay(id, { email: 'a@example.com' })
    expect(service.receiver.types()).toEqual([])
    await service.advance('3h')
    const seen = service.receiver.received.filter(({ type }) => type === 'payment.succeeded')
    expect(seen.map(({ isSigned }) => isSigned)).toEqual([false, true, true])
  })

  it('shuffle, the same way for the same seed, and lose nothing', async () => {
    const play = async () => {
      const service = await startHeard()
      await service.faults({ reorder: true })
      await subscribe(service)
      await service.advance('100d')
      return service.receiver.received.map(({ event }) => event)
    }
    const events = await play()
    const times = events.map(({ createdAt }) => createdAt)
    expect(times).not.toEqual([...times].sort())
    expect(events.filter(({ type }) => type === 'subscription.renewed')).toHaveLength(3)
    expect((await play()).map(({ id }) => id)).toEqual(events.map(({ id }) => id))
  })

  it('hold for one endpoint, or for all the others', async () => {
    const service = await startHeard(['v3', 'v2'])
    const { items } = await service.data('GET /sandbox/deliveries')
    expect(items).toEqual([])
    const { id } = await createPayment(service)
    await service.pay(id)
    const v2 = (await service.data('GET /sandbox/deliveries')).items.find(
      ({ type }: Json) => type === 'PAYMENT_SUCCESS',
    ).endpoint
    await service.faults({ drop: 1, endpoint: v2 })
    service.receiver.take()
    const next = await createPayment(service)
    await service.pay(next.id)
    expect(service.receiver.types()).toEqual(['payment.authorized', 'payment.succeeded', 'payment.completed'])
    const dropped = await service.data(`GET /sandbox/deliveries?endpoint=${v2}&status=dropped`)
    expect(dropped.items.map(({ type }: Json) => type)).toEqual([
      'PAYMENT_SUCCESS',
      'CHECKOUT_SUCCESS',
      'CHECKOUT_INITIATED',
    ])
    await service.faults(null)
    expect((await service.data('GET /sandbox/faults')).items).toEqual([])
    expect(await service.refusal('POST /sandbox/faults', { endpoint: 'whep_x' })).toBe(
      '404 WEBHOOK_ENDPOINT_NOT_FOUND',
    )
  })
})
