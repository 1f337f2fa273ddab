import { describe, expect, it } from 'vitest'
import { exchange, head } from '../handlers/raw-connection.js'
import { BODY, headersOf, lines, NOW_TEXT } from './deliveries.js'
import { warnings } from './observed.js'
import { rawPost } from './raw-post.js'
import { ask, runDaemon, send, sharedDaemon } from './running-daemon.js'
import { expectNothingStored, storedEvents } from './stored.js'

/** Of what is refused by its request line nothing may be left: all of them can meet the same daemon. */
const untouched = sharedDaemon()

describe('another method', () => {
  it.each(['GET', 'HEAD', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'])('%s is answered 405', async (method) => {
    const daemon = untouched()
    const answer = await fetch(`${daemon.url}/webhooks/live`, { method, headers: headersOf('') })
    expect(answer.status).toBe(405)
    expect(answer.headers.get('allow')).toBe('POST')
    if (method !== 'HEAD') expect(await answer.json()).toMatchObject({ code: 'method_not_allowed' })
    await expectNothingStored(daemon)
  })
})

describe('an endpoint that is not configured', () => {
  it.each(['other', 'LIVE', 'live2', '__proto__', 'constructor', 'live%20'])(
    '%s is not found',
    async (name) => {
      const daemon = untouched()
      const answer = await send(daemon, BODY, { endpoint: name })
      expect(answer.status).toBe(404)
      expect(await answer.json()).toMatchObject({ status: 404, code: 'endpoint_not_found' })
      await expectNothingStored(daemon)
    },
  )
})

describe('an odd path', () => {
  it.each<[path: string, status: number, code: string]>([
    ['/webhooks/..%2flive', 404, 'endpoint_not_found'],
    ['/webhooks/%2e%2e', 404, 'endpoint_not_found'],
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
    const headers = { ...headersOf(BODY), 'content-length': String(BODY.length), connection: 'close' }
    const answer = await exchange(daemon.url, head(`POST ${path}`, headers) + BODY)
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
    expect(answer).toContain(`"code":"${code}"`)
    await expectNothingStored(daemon)
  })

  it.each(['..%2f', 'cus_1%2F..%2F..', '%2Fetc%2Fpasswd'])(
    'as a customer, %s is an id like any other',
    async (id) => {
      const daemon = untouched()
      const answer = await ask(daemon, `/entitlements/${id}`)
      expect(answer.status).toBe(200)
      expect(await answer.json()).toMatchObject({ customerId: decodeURIComponent(id), entitlements: [] })
    },
  )

  it.each(['%00', '%E0%A4%A', '%0d%0a', 'a'.repeat(256)])('as a customer, %s is refused', async (id) => {
    const daemon = untouched()
    const answer = await ask(daemon, `/entitlements/${id}`)
    expect(answer.status).toBe(400)
    expect(await answer.json()).toMatchObject({ code: 'invalid_request', errors: [{ path: 'customerId' }] })
  })
})

describe('the limit on failed signatures', () => {
  it('moves for no forged address, and never touches what is authentic', async () => {
    const daemon = await runDaemon()
    const forge = (attempt: number) =>
      rawPost(`${daemon.url}/webhooks/live`, [
        ...lines(NOW_TEXT, `v1=${'0'.repeat(64)}`),
        ['X-Forwarded-For', `203.0.113.${attempt}`],
        ['Forwarded', `for=203.0.113.${attempt}`],
        ['X-Real-IP', `203.0.113.${attempt}`],
      ])
    const answers = []
    for (let attempt = 1; attempt <= 35; attempt += 1) answers.push(await forge(attempt))
    expect(answers.map(({ status }) => status)).toEqual([...Array(30).fill(401), ...Array(5).fill(429)])
    const limited = answers.at(-1)
    expect(JSON.parse(limited?.text ?? '')).toMatchObject({ status: 429, code: 'rate_limited' })
    expect(Number(limited?.headers['retry-after'])).toBeGreaterThan(0)
    await expectNothingStored(daemon)
    expect(new Set(warnings(daemon).map(({ address }) => address))).toEqual(new Set(['127.0.0.1']))
    expect(warnings(daemon)).toHaveLength(31)

    expect((await send(daemon, BODY)).status).toBe(200)
    expect(await storedEvents(daemon)).toHaveLength(1)
    expect((await forge(36)).status).toBe(429)
  })
})

describe('listeners of their own', () => {
  it('serve what they are for and nothing else, and the main one serves the rest', async () => {
    const daemon = await runDaemon({
      config: { server: { port: 0, webhooks: { port: 0 }, metrics: { port: 0 } } },
    })
    const { url, webhooksUrl, metricsUrl } = daemon
    expect((await send(daemon, BODY)).status).toBe(200)
    expect((await fetch(`${metricsUrl}/metrics`)).status).toBe(200)
    expect((await ask(daemon, '/entitlements/cus_told')).status).toBe(200)

    const elsewhere = [
      ...['/metrics', '/healthz', '/readyz', '/entitlements/cus_told', '/'].map((path) => webhooksUrl + path),
      ...['/healthz', '/readyz', '/entitlements/cus_told', '/webhooks/live', '/'].map(
        (path) => metricsUrl + path,
      ),
    ]
    for (const address of elsewhere) {
      const answer = await ask({ ...daemon, url: address }, '')
      expect([address, answer.status]).toEqual([address, 404])
      expect(await answer.json()).toMatchObject({ code: 'route_not_found' })
    }
    const misdirected = await send({ ...daemon, webhooksUrl: url }, BODY.replace('evt_signed', 'evt_2'))
    expect(misdirected.status).toBe(404)
    expect(await storedEvents(daemon)).toHaveLength(1)
  })
})
