import { Counter, Registry } from 'prom-client'
import { expect, it } from 'vitest'
import type { DeliveryGap } from '../../src/operations/delivery-gaps.js'
import { addDaemonMetrics, addStoreMetrics, type StoreMetricsDeps } from '../../src/operations/metrics.js'

const GAP = {
  lastAt: Date.parse('2026-03-02T12:00:00Z'),
  current: 90_000,
  usualInterval: 60_000,
  unusualAfter: null,
  isUnusual: false,
}

async function scrape(overrides: Partial<StoreMetricsDeps> = {}): Promise<readonly string[]> {
  const registry = new Registry()
  new Counter({ name: 'other_total', help: 'Another.', registers: [registry] }).inc()
  addStoreMetrics({
    registry,
    endpointNames: () => ['live'],
    readGaps: async () => new Map([['live', GAP]]),
    countWaiting: async () => [{ environment: 'live', disposition: 'held', count: 3, oldestAge: 60_000 }],
    readFirstBodyAge: async () => 86_400_000,
    readBytes: async () => 4096,
    ...overrides,
  })
  return (await registry.metrics()).split('\n').filter((line) => line !== '' && !line.startsWith('#'))
}

it('tells how old the oldest body is, as long as there is one', async () => {
  const told = async (overrides?: Partial<StoreMetricsDeps>) =>
    (await scrape(overrides)).filter((line) => line.startsWith('latchkey_oldest_body'))
  expect(await told()).toEqual(['latchkey_oldest_body_age_seconds 86400'])
  expect(await told({ readFirstBodyAge: async () => null })).toEqual([])
})

it('leaves out what is not known, and endpoints that are not configured', async () => {
  const gaps = new Map<string, DeliveryGap>([
    ['live', { ...GAP, usualInterval: null }],
    ['removed', GAP],
  ])
  const lines = await scrape({ endpointNames: () => ['live', 'new'], readGaps: async () => gaps })
  const deliveries = lines.filter((line) => /deliver/.test(line))
  expect(deliveries.map((line) => line.split(' ')[0])).toEqual([
    'latchkey_last_delivery_timestamp_seconds{endpoint="live"}',
    'latchkey_delivery_gap_seconds{endpoint="live"}',
  ])
})

it('still tells all else while the store cannot be read', async () => {
  const unreadable = async () => {
    throw new Error('disk I/O error')
  }
  const all = {
    readGaps: unreadable,
    countWaiting: unreadable,
    readFirstBodyAge: unreadable,
    readBytes: unreadable,
  }
  expect(await scrape(all)).toEqual(['other_total 1'])
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
