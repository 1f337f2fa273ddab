import { describe, expect, it } from 'vitest'
import type { ReadRecord } from '../../src/backfill/report.js'
import type { NormalizedEvent } from '../../src/provider/event.js'
import { normalise } from '../../src/provider/normalise.js'
import { plainSources } from '../entitlements/plain/ask.js'
import { plainEntitlements } from '../entitlements/plain/entitlements.js'
import { EXAMPLE_POLICY } from '../entitlements/policies.js'
import {
  createPayment,
  createProduct,
  type Json,
  MONTHLY,
  paymentsOf,
  startHeard,
  subscribe,
} from '../sandbox/service.js'
import { backfill } from './records.js'

type Heard = Awaited<ReturnType<typeof startHeard>>

/** What the receiver got, as it would be stored. */
function heard({ receiver }: Heard): readonly NormalizedEvent[] {
  return receiver.received.map(({ event }) => {
    const read = normalise(Buffer.from(JSON.stringify(event)), {
      environment: 'sandbox',
      receivedAt: Date.UTC(2030, 0, 1),
    })
    if (!read.ok) throw new Error(`a webhook that can't be read: ${read.reason}`)
    return read.event
  })
}

/** Everything that the service has on record, by its API. */
async function recordsOf(service: Heard): Promise<readonly ReadRecord[]> {
  const { items: subscriptions } = await service.data('GET /v3/subscriptions?limit=100')
  const { items: payments } = await service.data('GET /v3/payments?limit=100')
  const listed = await service.data('GET /api/payment?status=CHARGEBACK')
  const chargedBack = listed.data.map(({ id }: Json) => id)
  return [
    ...payments.map((json: Json) => ({
      kind: 'payment',
      json,
      isChargedBack: chargedBack.includes(json.id),
    })),
    ...subscriptions.map((json: Json) => ({ kind: 'subscription', json })),
  ]
}

const reportedOf = (records: readonly ReadRecord[], stored: readonly NormalizedEvent[], at: number) =>
  backfill(records, stored, { at }).events.map(({ event }) => event)

function accessBy(events: readonly NormalizedEvent[], now: number): readonly string[] {
  return plainEntitlements(plainSources(events, EXAMPLE_POLICY), now)
    .filter(({ active }) => active)
    .map(({ customerId, productId }) => `${customerId} ${productId}`)
}

const later = (service: Heard, time: string) => service.advance(time)
const refund = (service: Heard, id: string) => service.data(`POST /sandbox/payments/${id}/refund`)

/** Lives that begin with a subscription by card. */
const LIVES: Readonly<Record<string, (service: Heard, subscription: Json) => Promise<unknown>>> = {
  'renewed twice': (service) => later(service, '70d'),
  'renewed, and the newest payment refunded': async (service, { id }) => {
    await later(service, '40d')
    const [newest] = await paymentsOf(service, id)
    await refund(service, newest.id)
  },
  'upgraded, and the charge refunded': async (service, { id }) => {
    await later(service, '10d')
    const productId = await createProduct(service, { ...MONTHLY, priceCents: '4900' })
    const { payment } = await service.data(`POST /v3/subscriptions/${id}/change-plan`, { productId })
    await later(service, '5d')
    await refund(service, payment.id)
    await later(service, '1d')
  },
  'upgraded, then renewed': async (service, { id }) => {
    await later(service, '10d')
    const productId = await createProduct(service, { ...MONTHLY, priceCents: '4900' })
    await service.data(`POST /v3/subscriptions/${id}/change-plan`, { productId })
    await later(service, '30d')
  },
  'downgraded at the renewal': async (service, { id }) => {
    await later(service, '10d')
    const productId = await createProduct(service, { ...MONTHLY, priceCents: '500' })
    await service.data(`POST /v3/subscriptions/${id}/change-plan`, { productId })
    await later(service, '30d')
  },
  'canceled at once': async (service, { id }) => {
    await later(service, '10d')
    await service.data(`POST /v3/subscriptions/${id}/cancel`)
    await later(service, '1d')
  },
  'canceled for the end of its period, which is to come': async (service, { id }) => {
    await later(service, '10d')
    await service.data(`POST /v3/subscriptions/${id}/cancel`, { atPeriodEnd: true })
    await later(service, '1d')
  },
  'canceled for the end of its period, which is over': async (service, { id }) => {
    await later(service, '10d')
    await service.data(`POST /v3/subscriptions/${id}/cancel`, { atPeriodEnd: true })
    await later(service, '30d')
  },
  'in dunning': async (service, { customerId }) => {
    await service.data(`POST /sandbox/customers/${customerId}/card`, { outcome: 'soft_decline' })
    await later(service, '33d')
  },
  'expired after dunning': async (service, { customerId }) => {
    await service.data(`POST /sandbox/customers/${customerId}/card`, { outcome: 'soft_decline' })
    await later(service, '70d')
  },
  'renewed after dunning': async (service, { customerId }) => {
    await service.data(`POST /sandbox/customers/${customerId}/card`, { outcome: 'soft_decline' })
    await later(service, '32d')
    await service.data(`POST /sandbox/customers/${customerId}/card`, { outcome: 'success' })
    await later(service, '10d')
  },
  'charged back': async (service, { id }) => {
    await later(service, '10d')
    const [payment] = await paymentsOf(service, id)
    await service.data(`POST /sandbox/payments/${payment.id}/chargeback`)
    await later(service, '1d')
  },
  'beside payments for once': async (service) => {
    for (const acts of [[], ['capture'], ['void'], ['capture', 'refund'], ['capture', 'chargeback']]) {
      const { id } = await createPayment(service, { card: { capture: 'manual' } })
      await service.pay(id)
      for (const act of acts) await service.data(`POST /sandbox/payments/${id}/${act}`)
    }
    await service.pay((await createPayment(service)).id, { method: 'CRYPTO' })
    await later(service, '1d')
  },
}

describe('after a backfill of the sandbox, access is what it says itself, whichever webhooks were lost', () => {
  it.each(Object.keys(LIVES))('of a subscription %s', async (name) => {
    const service = await startHeard(['v3', 'v2'])
    await LIVES[name]?.(service, await subscribe(service))
    const at = Date.parse((await service.data('GET /sandbox/clock')).now)
    const truth = (await service.truth()).map(({ customerId, productId }) => `${customerId} ${productId}`)
    const all = heard(service)
    const records = await recordsOf(service)
    expect(accessBy(all, at)).toEqual([...truth].sort())
    const everyThird = [0, 1, 2].map((n) => (_: unknown, i: number) => i % 3 === n)
    const everySecond = [0, 1].map((n) => (_: unknown, i: number) => i % 2 === n)
    for (const isKept of [() => true, () => false, ...everySecond, ...everyThird]) {
      const stored = all.filter(isKept)
      const reported = reportedOf(records, stored, at)
      const filled = [...stored, ...reported]
      expect(accessBy(filled, at)).toEqual([...truth].sort())
      expect(accessBy([...filled, ...all.filter((event) => !stored.includes(event))], at)).toEqual(
        [...truth].sort(),
      )
      expect(reportedOf(records, filled, at)).toEqual([])
      // That a cancellation is to come is no event: only the record says so.
      const told = reported.filter(({ type }) => type !== 'subscription.reported')
      if (stored.length === all.length) expect(told).toEqual([])
    }
  })
})
