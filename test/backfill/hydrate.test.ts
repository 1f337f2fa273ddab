import { describe, expect, it } from 'vitest'
import { createHydrate } from '../../src/backfill/hydrate.js'
import { createLogger } from '../../src/log.js'
import { createPaymentsApi } from '../../src/payments-api/client.js'
import { readAccess } from '../../src/store/access.js'
import { noteAskedRecord } from '../../src/store/awaited-records.js'
import { ask, NOW, runDaemon, send } from '../daemon/running-daemon.js'
import { EXAMPLE_POLICY } from '../entitlements/policies.js'
import { deliveryOf } from '../ingest/wire.js'
import { storeUnder } from '../recompute/recompute-store.js'
import { createPayment, day, type Json, startService, subscribe } from '../sandbox/service.js'
import { eventually } from '../setup/eventually.js'
import { startRelay } from './relay.js'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

/** A store with a service to ask, and a clock that is 400 days ahead of the service's beginning. */
async function begin() {
  const service = await startService()
  const relay = await startRelay(service, 100)
  const store = await storeUnder(EXAMPLE_POLICY)
  const calls: string[] = []
  let now = Date.parse(day(400))
  let status = 200
  relay.before = (path, res) => {
    calls.push(path.replace('GET ', ''))
    if (status !== 200) res.writeHead(status).end('{}')
    return status !== 200
  }
  const api = createPaymentsApi({
    environment: 'sandbox',
    baseUrl: relay.url,
    apiKey: service.key,
    retries: 0,
    clock: () => now,
    random: () => 0,
  })
  const hydrate = createHydrate({
    db: store.db,
    apis: [api],
    ingest: async (event) => {
      const { receipts } = await store.writeBatch([event])
      if (receipts[0] === undefined) throw new Error('no receipt')
      return receipts[0]
    },
    aheadAtMostMs: () => 86_400_000,
    noteAsked: (record) => store.db.transaction().execute((trx) => noteAskedRecord(trx, record, now)),
    clock: () => now,
    log: createLogger('silent'),
  })
  return {
    service,
    /** A webhook of these words, of which only the id is sure, arrives now. */
    async hear(type: string, data: Json): Promise<string | undefined> {
      const event = {
        id: `evt_${type.replace('.', '_')}_${data.id}`,
        type,
        createdAt: (await service.data('GET /sandbox/clock')).now,
        data,
      }
      const delivery = deliveryOf(JSON.stringify(event), { environment: 'sandbox', receivedAt: now })
      const { receipts } = await store.writeBatch([delivery])
      return receipts[0]?.disposition
    },
    pass: (ms: number) => {
      now += ms
    },
    answerWith: (next: number) => {
      status = next
    },
    /** What is asked for in one turn. */
    async asked() {
      calls.length = 0
      await hydrate(new AbortController().signal)
      return [...calls]
    },
    async access(customerId: string) {
      const { entitlements } = await readAccess(store.db, () => now, {
        environment: 'sandbox',
        customerId,
        at: null,
      })
      return entitlements.filter(({ active }) => active).map(({ productId }) => productId)
    },
  }
}

const CARD = { card: { tokenizedInstrument: 'tok_good' } }

describe('an event that is held', () => {
  it('is completed by its payment’s record after a minute, by one call', async () => {
    const { service, hear, pass, asked, access } = await begin()
    const { id } = await createPayment(service, CARD)
    const { customerId, productId } = await service.data(`GET /v3/payments/${id}`)
    expect(await hear('payment.authorized', { id, method: 'CARD' })).toBe('held')
    pass(MINUTE - 1)
    expect(await asked()).toEqual([])
    pass(1)
    expect(await asked()).toEqual([`/v3/payments/${id}`])
    expect(await access(customerId)).toEqual([productId])
    pass(2 * HOUR)
    expect(await asked()).toEqual([])
  })

  it('is completed by its subscription’s record, by one call for all that wait for it', async () => {
    const { service, hear, pass, asked, access } = await begin()
    const { id, customerId, productId, payment } = await subscribe(service)
    expect(await hear('subscription.created', { id })).toBe('held')
    expect(await hear('payment.authorized', { id: payment.id, subscriptionId: id, method: 'CARD' })).toBe(
      'held',
    )
    pass(MINUTE)
    expect(await asked()).toEqual([`/v3/subscriptions/${id}`])
    expect(await access(customerId)).toEqual([productId])
  })

  it('is completed by its payment’s record if only that says how it was paid', async () => {
    const { service, hear, pass, asked, access } = await begin()
    const { id } = await createPayment(service, { crypto: {} })
    await service.data(`POST /sandbox/payments/${id}/pay`)
    const { customerId, productId } = await service.data(`GET /v3/payments/${id}`)
    expect(await hear('checkout.succeeded', { id, customer: customerId, product: productId })).toBe('held')
    pass(MINUTE)
    expect(await asked()).toEqual([`/v3/payments/${id}`])
    expect(await access(customerId)).toEqual([productId])
  })

  it('is asked about once an hour while the service does not know it, and no more after a day', async () => {
    const { hear, pass, asked } = await begin()
    await hear('payment.authorized', { id: 'pay_elsewhere', method: 'CARD' })
    pass(MINUTE)
    expect(await asked()).toEqual(['/v3/payments/pay_elsewhere'])
    pass(HOUR - 1)
    expect(await asked()).toEqual([])
    let times = 1
    for (pass(1); times < 100; times += 1, pass(HOUR)) if ((await asked()).length === 0) break
    expect(times).toBe(24)
  })

  it('is not asked about if it names no source, since no record can tell', async () => {
    const { hear, pass, asked } = await begin()
    expect(await hear('payment.authorized', { method: 'CARD' })).toBe('held')
    pass(MINUTE)
    expect(await asked()).toEqual([])
  })

  it('waits an hour for the next call if the service fails, and the others are asked for the next time', async () => {
    const { service, hear, pass, asked, answerWith, access } = await begin()
    await hear('payment.authorized', { id: 'pay_first', method: 'CARD' })
    pass(1)
    const { id } = await createPayment(service, CARD)
    const { customerId, productId } = await service.data(`GET /v3/payments/${id}`)
    await hear('payment.authorized', { id, method: 'CARD' })
    pass(MINUTE)
    answerWith(503)
    await expect(asked()).rejects.toMatchObject({ code: 'payments_api_unavailable' })
    answerWith(200)
    expect(await asked()).toEqual([`/v3/payments/${id}`])
    expect(await access(customerId)).toEqual([productId])
    pass(HOUR)
    expect(await asked()).toEqual(['/v3/payments/pay_first'])
  })
})

it('the daemon asks by itself, and stores what it is told as an event like all others', async () => {
  const service = await startService()
  const { id } = await createPayment(service, CARD)
  const { customerId, productId } = await service.data(`GET /v3/payments/${id}`)
  const { now: createdAt } = await service.data('GET /sandbox/clock')
  const provider = { sandbox: { baseUrl: service.url, apiKey: service.key } }
  const daemon = await runDaemon({ config: { provider } })
  const event = { id: 'evt_1', type: 'payment.authorized', createdAt, data: { id, method: 'CARD' } }
  const { disposition } = (await (
    await send(daemon, JSON.stringify(event), { endpoint: 'sandbox' })
  ).json()) as Json
  expect(disposition).toBe('held')
  daemon.setNow(NOW + MINUTE)
  const later = await daemon.restart()
  await eventually(async () => {
    const answer = await ask(later, `/entitlements/${customerId}/${productId}?environment=sandbox`)
    expect(await answer.json()).toMatchObject({ active: true })
  })
  const events = await ask(later, '/events?environment=sandbox&endpoint=backfill')
  expect(await events.json()).toMatchObject({
    items: [{ type: 'payment.succeeded', disposition: 'applied' }],
  })
})
