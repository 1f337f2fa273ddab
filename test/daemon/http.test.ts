import { describe, expect, it } from 'vitest'
import { signBody } from '../../src/provider/signature.js'
import { exchange, head } from '../handlers/raw-connection.js'
import { ask, LIVE_SECRET, NOW, runDaemon, send, sharedDaemon } from './running-daemon.js'
import { expectNothingStored, storedEvents } from './stored.js'
import { CUSTOMER, wireEvent } from './wire-events.js'

const BODY = wireEvent('payment.authorized', { id: 'evt_http' })

/** Of what is refused by its request line nothing may be left: all of them can meet the same daemon. */
const untouched = sharedDaemon()

describe('an odd path', () => {
  it.each<[path: string, status: number, code: string]>([
    ...['other', 'LIVE', 'live2', '__proto__', 'constructor', 'live%20', '..%2flive', '%2e%2e'].map(
      (name): [string, number, string] => [`/webhooks/${name}`, 404, 'endpoint_not_found'],
    ),
    ['/webhooks/%00', 400, 'invalid_request'],
    ['/webhooks/live%00', 400, 'invalid_request'],
    ['/webhooks/%E0%A4%A', 400, 'invalid_request'],
    ['/webhooks/%', 400, 'invalid_request'],
    [`/webhooks/${'a'.repeat(5000)}`, 400, 'invalid_request'],
    [`/webhooks/${'a'.repeat(20_000)}`, 431, 'headers_too_large'],
    ['/webhooks/', 404, 'route_not_found'],
    ['/webhooks//live', 404, 'route_not_found'],
    ['/webhooks/live/', 404, 'route_not_found'],
    ['/webhooks/../webhooks/live', 404, 'route_not_found'],
    ['/webhooks%2flive', 404, 'route_not_found'],
    ['//webhooks/live', 404, 'route_not_found'],
    ['/%E0%A4%A', 404, 'route_not_found'],
    ['/%00', 404, 'route_not_found'],
    ['/', 404, 'route_not_found'],
    ['*', 404, 'route_not_found'],
  ])('%s is answered %i, and is no way in', async (path, status, code) => {
    const daemon = untouched()
    const timestamp = String(Math.floor(NOW / 1000))
    const headers = {
      'X-Webhook-Timestamp': timestamp,
      'X-Webhook-Signature': signBody(LIVE_SECRET, timestamp, Buffer.from(BODY)),
      'content-length': String(BODY.length),
      connection: 'close',
    }
    const answer = await exchange(daemon.url, head(`POST ${path}`, headers) + BODY)
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
    expect(answer).toContain(`"code":"${code}"`)
    await expectNothingStored(daemon)
  })
})

it('listeners of their own serve what they are for and nothing else, and the main one serves the rest', async () => {
  const server = { port: 0, webhooks: { port: 0 }, metrics: { port: 0 } }
  const daemon = await runDaemon({ config: { server } })
  const { url, webhooksUrl, metricsUrl } = daemon
  expect((await send(daemon, BODY)).status).toBe(200)
  expect((await fetch(`${metricsUrl}/metrics`)).status).toBe(200)
  expect((await ask(daemon, `/entitlements/${CUSTOMER}`)).status).toBe(200)
  for (const path of ['/healthz', '/readyz', `/entitlements/${CUSTOMER}`, '/']) {
    for (const own of [webhooksUrl, metricsUrl]) {
      const answer = await ask({ ...daemon, url: own }, path)
      expect([path, await answer.json()]).toMatchObject([path, { status: 404, code: 'route_not_found' }])
    }
  }
  expect((await ask({ ...daemon, url: webhooksUrl }, '/metrics')).status).toBe(404)
  expect((await send({ ...daemon, webhooksUrl: url }, BODY.replace('evt_http', 'evt_2'))).status).toBe(404)
  expect(await storedEvents(daemon)).toHaveLength(1)
})
