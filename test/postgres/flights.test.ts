import { expect, it } from 'vitest'
import { DOCUMENTED_POLICY } from '../../src/entitlements/policy.js'
import { createBatchWriter } from '../../src/ingest/commit.js'
import type { Incoming } from '../../src/ingest/delivery.js'
import { undatedAct } from '../../src/people/acts.js'
import { openPostgres } from '../../src/store/postgres/dialect.js'
import { deliveryOf, grantOf } from '../ingest/wire.js'
import { postgresAt } from '../world.js'
import { openWay, urlBy } from './way.js'

const NOW = Date.UTC(2026, 5, 1)

/** A writer, and how often it has sent something after it had got an answer. */
async function countedWriter() {
  const options = await postgresAt(`flights ${Math.random()}`)
  const counted = { flights: 0 }
  let isAnswered = true
  const way = await openWay(
    () => Number(new URL(options.url).port),
    () => {
      if (isAnswered) counted.flights += 1
      isAnswered = false
      return () => {
        isAnswered = true
      }
    },
  )
  const db = openPostgres({ ...options, url: urlBy(way, options.url) }, 'write', { most: 1 })
  const writeBatch = createBatchWriter({ db, policy: () => DOCUMENTED_POLICY, clock: () => NOW })
  // The connection is there, and statements are prepared in the flight in which they are first needed.
  await writeBatch([grantOf(0)])
  return {
    async flightsOf(...batch: readonly Incoming[]) {
      counted.flights = 0
      await writeBatch(batch)
      return counted.flights
    },
    close: () => db.destroy(),
  }
}

function subscribed(id: string, type: string, minute: number, data: object = {}): Incoming {
  const createdAt = new Date(NOW - 60 * 60_000 + minute * 60_000).toISOString()
  const facts = { customer: { id: 'cus_a' }, product: { id: 'pro_1' }, method: 'CARD' }
  return deliveryOf(JSON.stringify({ id, type, createdAt, data: { ...facts, ...data } }))
}

const PAID = subscribed('evt_1', 'payment.authorized', 1, { id: 'pay_a', subscription_id: 'sub_1' })
const CREATED = subscribed('evt_2', 'subscription.created', 2, { id: 'sub_1', payment_id: 'pay_a' })
const RENEWED = subscribed('evt_3', 'subscription.renewed', 3, { id: 'sub_1', payment_id: 'pay_b' })
/** It says neither whose it is, nor of which subscription. */
const REFUNDED = subscribed('evt_4', 'payment.refunded', 4, { id: 'pay_a', customer: null })
const GRANTED = {
  environment: 'live',
  undated: undatedAct({
    id: 'man_1',
    type: 'manual.granted',
    customerId: 'cus_a',
    productId: 'pro_2',
    actor: 'a',
    reason: null,
  }),
} as const

it('a transaction reads in one flight and writes in the other', async () => {
  const { flightsOf, close } = await countedWriter()
  expect(await flightsOf(grantOf(1))).toBe(2)
  expect(await flightsOf(...[2, 3, 4, 5].map(grantOf))).toBe(2)
  expect(await flightsOf(PAID, CREATED)).toBe(2)
  expect(await flightsOf(RENEWED)).toBe(2)
  expect(await flightsOf(RENEWED, CREATED)).toBe(2)
  expect(await flightsOf(GRANTED)).toBe(2)
  await close()
})

it('one that turns out to concern more begins again with all of it', async () => {
  const { flightsOf, close } = await countedWriter()
  await flightsOf(PAID, CREATED)
  // What it has read leads on to the subscription, whose owner is its customer; then it is rolled back.
  expect(await flightsOf(REFUNDED)).toBeLessThanOrEqual(8)
  await close()
})
