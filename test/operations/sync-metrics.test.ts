import { Registry } from 'prom-client'
import { expect, it } from 'vitest'
import { addSyncMetrics, type SyncState } from '../../src/operations/metrics.js'

const NOON = Date.parse('2026-03-01T12:00:00.000Z')

const STATE: SyncState = {
  paused: true,
  platforms: [
    {
      platform: 'discord',
      state: 'stopped',
      until: null,
      reason: { code: 'token_refused', message: 'Set the token.' },
    },
  ],
  targets: [
    {
      environment: 'live',
      target: 'discord:1:2',
      state: 'ok',
      until: null,
      reason: null,
      memberships: { settled: 5, due: 0, retrying: 1, waiting: 4, parked: 2, unconfirmed: 0 },
    },
  ],
  unconfirmed: 0,
  sweptAt: null,
  checked: null,
  webhooks: [
    {
      id: 'crm',
      origin: 'https://app.example',
      disabled: false,
      waiting: 4,
      oldestWaitingAt: NOON,
      failed: 3,
      lastDeliveredAt: null,
      lastError: { at: NOON, reason: 'answered 410' },
    },
  ],
  unreachable: [{ platform: 'webhook:crm', since: NOON, reason: 'answered 500' }],
  leads: false,
}

/** The series of one scrape. */
async function scrape(registry: Registry): Promise<string[]> {
  return (await registry.metrics()).split('\n').filter((line) => line !== '' && !line.startsWith('#'))
}

it('tells how far memberships and messages are, and what was done, from one reading', async () => {
  const registry = new Registry()
  let readings = 0
  const metrics = addSyncMetrics(registry, async () => {
    readings += 1
    return STATE
  })
  metrics.driven('discord', 'given')
  metrics.driven('discord', 'given')
  expect(await scrape(registry)).toEqual([
    'latchkey_sync_memberships{environment="live",target="discord:1:2",state="settled"} 5',
    'latchkey_sync_memberships{environment="live",target="discord:1:2",state="due"} 0',
    'latchkey_sync_memberships{environment="live",target="discord:1:2",state="retrying"} 1',
    'latchkey_sync_memberships{environment="live",target="discord:1:2",state="waiting"} 4',
    'latchkey_sync_memberships{environment="live",target="discord:1:2",state="parked"} 2',
    'latchkey_sync_memberships{environment="live",target="discord:1:2",state="unconfirmed"} 0',
    'latchkey_sync_stopped{name="discord"} 1',
    'latchkey_sync_stopped{name="discord:1:2"} 0',
    'latchkey_sync_paused 1',
    'latchkey_leads 0',
    'latchkey_outbound_messages{webhook="crm",state="pending"} 4',
    'latchkey_outbound_messages{webhook="crm",state="failed"} 3',
    `latchkey_outbound_oldest_waiting_timestamp_seconds{webhook="crm"} ${NOON / 1000}`,
    `latchkey_outbound_last_error_timestamp_seconds{webhook="crm"} ${NOON / 1000}`,
    'latchkey_platform_unreachable{platform="discord"} 0',
    'latchkey_platform_unreachable{platform="webhook:crm"} 1',
    'latchkey_sync_calls_total{platform="discord",result="given"} 2',
  ])
  expect(readings).toBe(1)
})

it('tells the rest while the store can’t be read', async () => {
  const registry = new Registry()
  const metrics = addSyncMetrics(registry, () => Promise.reject(new Error('The disk is gone.')))
  metrics.driven('telegram', 'failed')
  expect(await scrape(registry)).toEqual(['latchkey_sync_calls_total{platform="telegram",result="failed"} 1'])
})
