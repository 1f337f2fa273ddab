import { Counter, Registry } from 'prom-client'
import { expect, it } from 'vitest'
import { addDaemonMetrics, addStoreMetrics, type LastBackfill } from '../../src/operations/metrics.js'
import type { DeliveryPace } from '../../src/store/deliveries.js'
import { insertEvents } from '../../src/store/events.js'
import type { Db } from '../../src/store/schema.js'
import { unreadableStore } from '../handlers/daemon-front.js'
import { newEvent } from '../store/events.js'
import { temporaryStore } from '../store/temporary-store.js'

const NOW = Date.parse('2026-03-02T12:01:30Z')
const DAY_MS = 86_400_000

const PACE: DeliveryPace = {
  arrivals: 2,
  firstAt: NOW - 150_000,
  lastAt: NOW - 90_000,
  meanInterval: 60_000,
  weekAt: NOW - 150_000,
  longest: 60_000,
  longestBefore: 0,
}

async function scrape(
  db: Db,
  endpointNames: readonly string[] = ['live'],
  readBytes = async () => 4096,
  backfills: readonly LastBackfill[] = [],
): Promise<readonly string[]> {
  const registry = new Registry()
  new Counter({ name: 'other_total', help: 'Another.', registers: [registry] }).inc()
  addStoreMetrics({
    ...{ registry, endpointNames: () => endpointNames, db, readBytes, clock: () => NOW },
    readBackfills: async () => backfills,
  })
  return (await registry.metrics()).split('\n').filter((line) => line !== '' && !line.startsWith('#'))
}

it('tells how old the oldest body is, as long as there is one', async () => {
  const db = await temporaryStore()
  const told = async () => (await scrape(db)).filter((line) => line.startsWith('latchkey_oldest_body'))
  expect(await told()).toEqual([])
  const event = newEvent(undefined, { receivedAt: NOW - DAY_MS })
  await db.transaction().execute((trx) => insertEvents(trx, [event]))
  expect(await told()).toEqual(['latchkey_oldest_body_age_seconds 86400'])
})

it('tells how many events wait, also where none do, and how old the oldest of them is', async () => {
  const db = await temporaryStore()
  const told = { disposition: 'held', reason: 'customer_unknown', receivedAt: NOW - 60_000 } as const
  await db.transaction().execute((trx) => insertEvents(trx, [newEvent(undefined, told)]))
  expect((await scrape(db)).filter((line) => line.includes('waiting'))).toEqual([
    'latchkey_events_waiting{environment="live",disposition="held"} 1',
    'latchkey_events_waiting{environment="live",disposition="quarantined"} 0',
    'latchkey_events_waiting{environment="sandbox",disposition="held"} 0',
    'latchkey_events_waiting{environment="sandbox",disposition="quarantined"} 0',
    'latchkey_oldest_waiting_event_age_seconds{environment="live",disposition="held"} 60',
  ])
})

it('tells when the last backfill of each environment ended, and what came of it', async () => {
  const last = { environment: 'live', endedAt: 60_000, stored: 3, differences: 1 } as const
  const lines = await scrape(await temporaryStore(), [], undefined, [last])
  expect(lines.filter((line) => line.includes('backfill'))).toEqual([
    'latchkey_last_backfill_timestamp_seconds{environment="live"} 60',
    'latchkey_last_backfill_stored_events{environment="live"} 3',
    'latchkey_last_backfill_differences{environment="live"} 1',
  ])
})

it('leaves out what is not known, and endpoints that are not configured', async () => {
  const db = await temporaryStore()
  const paces = { live: { ...PACE, meanInterval: null }, removed: PACE }
  for (const [endpoint, pace] of Object.entries(paces))
    await db
      .insertInto('delivery_pace')
      .values({ endpoint, pace: JSON.stringify(pace) })
      .execute()
  const lines = await scrape(db, ['live', 'new'])
  expect(lines.filter((line) => /deliver/.test(line))).toEqual([
    `latchkey_last_delivery_timestamp_seconds{endpoint="live"} ${PACE.lastAt / 1000}`,
    'latchkey_delivery_gap_seconds{endpoint="live"} 90',
  ])
})

it('still tells all else while the store cannot be read', async () => {
  const unreadable = async () => {
    throw new Error('disk I/O error')
  }
  expect(await scrape(unreadableStore(), ['live'], unreadable)).toEqual(['other_total 1'])
})

it('says when a name is left without a key, and an endpoint without a secret', async () => {
  const registry = new Registry()
  const [soon, later] = [Date.parse('2026-04-01T00:00:00Z'), Date.parse('2026-05-01T00:00:00Z')]
  const endpoint = (name: string, ...ends: readonly (number | null)[]) => ({
    name,
    environment: 'live' as const,
    toleranceSeconds: 300,
    aheadAtMostMs: 86_400_000,
    secrets: ends.map((notAfter) => ({ secret: 'whsec_never_shown', notAfter })),
  })
  addDaemonMetrics(registry, async () => ({
    version: '1.2.3',
    isReady: false,
    isConfigOutdated: true,
    apiKeys: [
      { name: 'app', expiresAt: later },
      { name: 'app', expiresAt: soon },
      { name: 'rotated', expiresAt: null },
      { name: 'rotated', expiresAt: soon },
    ],
    endpoints: [endpoint('v3', soon, later), endpoint('legacy', soon, null)],
  }))
  const lines = (await registry.metrics()).split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  expect(lines).toEqual([
    'latchkey_info{version="1.2.3"} 1',
    'latchkey_ready 0',
    'latchkey_config_outdated 1',
    `latchkey_api_key_expiry_timestamp_seconds{name="app"} ${later / 1000}`,
    `latchkey_signing_secret_expiry_timestamp_seconds{endpoint="v3"} ${later / 1000}`,
  ])
})
