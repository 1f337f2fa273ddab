import { describe, expect, it } from 'vitest'
import { LatchkeyError } from '../../src/errors.js'
import type { Reloaded } from '../../src/handlers/control.js'
import { call, NOW, runDaemon, send } from './running-daemon.js'
import { wireEvent } from './wire-events.js'

const NOTHING_CHANGED: Reloaded = { changed: [], needsRestart: [], policyDiffers: false }

function control(reload = async () => NOTHING_CHANGED) {
  const asked: string[] = []
  return {
    asked,
    version: '1.2.3',
    reload: () => {
      asked.push('reload')
      return reload()
    },
    stop: () => void asked.push('stop'),
  }
}

describe('GET /status', () => {
  it('says what runs, where, and what it is doing', async () => {
    const daemon = await runDaemon({
      config: { server: { port: 0, metrics: { port: 0 } } },
      control: control(),
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
      sync: { paused: true, due: 0, parked: 0, unconfirmed: 0, messages: 0, unreachable: [] },
    })
  })
})

describe('POST /reload', () => {
  it('answers what was taken over and what needs a restart', async () => {
    const reloaded = { changed: ['endpoints'], needsRestart: ['server.port'], policyDiffers: true }
    const daemon = await runDaemon({ control: control(async () => reloaded) })
    const answer = await call(daemon, 'POST', '/reload')
    expect(answer).toEqual({ status: 200, json: reloaded })
  })

  it('refuses a file that is not valid, with every problem and its path', async () => {
    const issues = [{ path: 'endpoints.live.secrets[0]', message: 'is empty' }]
    const reload = () =>
      Promise.reject(new LatchkeyError('config_invalid', 'the config file has a problem', { issues }))
    const daemon = await runDaemon({ control: control(reload) })
    const answer = await call(daemon, 'POST', '/reload')
    expect(answer).toMatchObject({
      status: 400,
      json: {
        code: 'invalid_request',
        detail: 'the config file has a problem; the running config is kept',
        errors: issues,
      },
    })
  })
})

describe('POST /stop', () => {
  it('answers before the daemon stops', async () => {
    const asking = control()
    const daemon = await runDaemon({ control: asking })
    const answer = await call(daemon, 'POST', '/stop')
    expect(answer).toEqual({ status: 202, json: { stopping: true } })
    expect(asking.asked).toEqual(['stop'])
  })
})
