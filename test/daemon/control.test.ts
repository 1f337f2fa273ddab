import { describe, expect, it } from 'vitest'
import { keyEntry } from '../world.js'
import { API_KEY, call, NOW, runDaemon, send } from './running-daemon.js'
import { wireEvent } from './wire-events.js'

const control = {
  version: '1.2.3',
  reload: async () => ({ changed: [], needsRestart: [], policyDiffers: false }),
  stop: () => {},
}

describe('GET /keys', () => {
  it('says when each key was last used, after a restart too, and shows no secret', async () => {
    const config = {
      api: {
        keys: [
          { ...keyEntry('operator', API_KEY), scopes: ['read', 'admin'], environments: ['live', 'sandbox'] },
          { ...keyEntry('idle', 'lk_idle'), expiresAt: '2027-01-01T00:00:00Z', rateLimit: { perSecond: 5 } },
        ],
      },
    }
    const daemon = await runDaemon({ config })
    const keys = async (one: typeof daemon) => (await call(one, 'GET', '/keys')).json
    const usedAt = NOW + 60_000
    daemon.setNow(usedAt)
    const operator = {
      name: 'operator',
      scopes: ['read', 'admin'],
      environments: ['live', 'sandbox'],
      createdAt: null,
      expiresAt: null,
      rateLimit: null,
      isReplaced: false,
      lastUsedAt: new Date(usedAt).toISOString(),
    }
    const idle = {
      ...operator,
      name: 'idle',
      scopes: ['read'],
      environments: ['live'],
      expiresAt: '2027-01-01T00:00:00.000Z',
      rateLimit: { perSecond: 5, burst: 5 },
      lastUsedAt: null,
    }
    expect(await keys(daemon)).toEqual({ keys: [operator, idle] })

    // At the restarted one's clock it is earlier: the use that it stored counts.
    const next = await daemon.restart()
    expect(await keys(next)).toEqual({ keys: [operator, idle] })
  })
})

describe('GET /status', () => {
  it('says what runs, where, and what it is doing', async () => {
    const daemon = await runDaemon({
      config: { server: { port: 0, metrics: { port: 0 } } },
      control,
    })
    expect((await send(daemon, wireEvent('payment.authorized'))).status).toBe(200)
    daemon.setNow(NOW + 60_000)
    expect((await call(daemon, 'GET', '/status')).json).toEqual({
      version: '1.2.3',
      pid: process.pid,
      startedAt: new Date(NOW).toISOString(),
      config: `${daemon.folder}/config.json`,
      ready: true,
      notes: [],
      listeners: {
        api: daemon.url,
        webhooks: daemon.url,
        metrics: daemon.metricsUrl,
        socket: `${daemon.folder}/data/latchkey.sock`,
      },
      database: { file: daemon.databaseFile, bytes: expect.any(Number) },
      queue: { deliveries: 0, bytes: 0 },
      endpoints: [
        { name: 'live', environment: 'live', lastEventAt: new Date(NOW).toISOString() },
        { name: 'sandbox', environment: 'sandbox', lastEventAt: null },
      ],
      sync: null,
      job: null,
    })
  })

  it('says how roles, groups and the outbound webhook stand', async () => {
    const sync = { webhook: { url: 'http://127.0.0.1:9/', secret: `whsec_${'A'.repeat(44)}` } }
    const daemon = await runDaemon({ config: { sync } })
    await call(daemon, 'POST', '/sync/pause')
    expect((await call(daemon, 'GET', '/status')).json).toMatchObject({
      sync: { paused: true, leads: true, due: 0, parked: 0, unconfirmed: 0, messages: 0, unreachable: [] },
    })
  })
})
