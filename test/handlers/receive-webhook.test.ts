import request from 'supertest'
import { describe, expect, it } from 'vitest'
import { eventually } from '../setup/eventually.js'
import { FREE_PORT, NOW, NOW_SECONDS, OLD_SECRET, openFront, SECRET, signed } from './daemon-front.js'
import { exchange, head, openConnection } from './raw-connection.js'

const WITH_METRICS = { ...FREE_PORT, trustProxy: 0, webhooks: null, metrics: FREE_PORT }
const BODY = '{"id":"evt_1"}'

describe('an authentic delivery', () => {
  it('is handed on with the exact bytes and headers, and answered with what became of it', async () => {
    const { url, deliveries } = await openFront()
    const headers = signed(BODY)
    const answer = await request(url).post('/webhooks/v3').set(headers).send(BODY)

    expect(answer.status).toBe(200)
    expect(answer.body).toEqual({ received: true, id: 'evt_1', disposition: 'applied' })
    expect(deliveries).toEqual([
      {
        endpoint: 'v3',
        environment: 'live',
        aheadAtMostMs: 86_400_000,
        body: Buffer.from(BODY),
        headers: {
          event: 'payment.succeeded',
          timestamp: String(NOW_SECONDS),
          signature: headers['x-webhook-signature'],
        },
        receivedAt: NOW,
      },
    ])
  })

  it.each([
    ['nothing', Buffer.alloc(0)],
    ['invalid UTF-8', Buffer.from([0xff, 0xfe, 0x00, 0xc3])],
    ['a byte order mark', Buffer.from('\ufeff{}')],
    ['the largest body allowed', Buffer.alloc(1024 * 1024, 'a')],
  ])('may consist of %s', async (_name, body) => {
    const { url, deliveries } = await openFront()
    const answer = await fetch(`${url}/webhooks/v3`, { method: 'POST', headers: signed(body), body })
    expect(answer.status).toBe(200)
    expect(deliveries[0]?.body.equals(body)).toBe(true)
  })

  it.each([
    [],
    ['text/plain'],
    ['application/json; charset=odd'],
    ['application/json; charset=utf-16le'],
    [';;;'],
    ['text/html', 'image/png'],
  ])('may have the content type %s, which decides nothing', async (...types) => {
    const { url, deliveries } = await openFront()
    const headers = { ...signed(BODY), 'content-length': String(BODY.length), connection: 'close' }
    const lines = types.map((type) => `content-type: ${type}\r\n`).join('')
    const sent = head('POST /webhooks/v3', headers).replace('\r\n\r\n', `\r\n${lines}\r\n`)
    expect(await exchange(url, sent + BODY)).toMatch(/^HTTP\/1\.1 200 /)
    expect(deliveries).toMatchObject([{ body: Buffer.from(BODY) }])
  })

  it('may come in chunks, and its event header may be missing', async () => {
    const { url, deliveries } = await openFront()
    const { 'x-webhook-event': _event, ...headers } = signed(BODY)
    const chunked = { ...headers, 'transfer-encoding': 'chunked', connection: 'close' }
    const bytes = `${head('POST /webhooks/v3', chunked)}1\r\n{\r\nd\r\n${BODY.slice(1)}\r\n0\r\n\r\n`
    expect(await exchange(url, bytes)).toMatch(/^HTTP\/1\.1 200 /)
    expect(deliveries[0]).toMatchObject({ body: Buffer.from(BODY), headers: { event: null } })
  })

  it('is answered 500 without details when there is a bug, which is logged', async () => {
    const { url, logged } = await openFront({
      ingest: async () => {
        throw new Error('the inner workings')
      },
    })
    const answer = await request(url).post('/webhooks/v3').set(signed(BODY)).send(BODY)
    expect(answer.status).toBe(500)
    expect(answer.body.code).toBe('internal_error')
    expect(answer.text).not.toContain('inner workings')
    expect(JSON.stringify(logged)).toContain('the inner workings')
  })
})

describe('an unauthentic delivery', () => {
  const good = signed(BODY)
  const withTime = (timestamp: string) => signed(BODY, { timestamp })

  it.each([
    ['without a signature', { 'x-webhook-timestamp': String(NOW_SECONDS) }, 'signature_missing'],
    ['with a truncated digest', { ...good, 'x-webhook-signature': 'v1=abcd' }, 'signature_invalid'],
    ['signed with another secret', signed(BODY, { secret: 'whsec_x' }), 'signature_invalid'],
    ['signed for another body', signed('{}'), 'signature_invalid'],
    ['with a timestamp that is no number', withTime('12abc'), 'timestamp_invalid'],
    ['301 s old', withTime(String(NOW_SECONDS - 301)), 'timestamp_out_of_tolerance'],
    ['301 s ahead', withTime(String(NOW_SECONDS + 301)), 'timestamp_out_of_tolerance'],
  ])('%s is refused by code, and goes no further', async (_name, headers, code) => {
    const { url, deliveries } = await openFront()
    const answer = await request(url)
      .post('/webhooks/v3')
      .set(headers as Record<string, string>)
      .send(BODY)
    expect(answer.status).toBe(401)
    expect(answer.headers['www-authenticate']).toBe('Signature')
    expect(answer.headers['content-type']).toBe('application/problem+json')
    expect(answer.body).toMatchObject({ type: `urn:latchkey:problem:${code}`, status: 401, code })
    expect(deliveries).toEqual([])
  })

  it.each(['x-webhook-signature', 'x-webhook-timestamp'])('with %s sent twice is refused', async (name) => {
    const { url, deliveries } = await openFront()
    const value = signed(BODY)[name]
    const headers = { ...signed(BODY), 'content-length': String(BODY.length), connection: 'close' }
    const twice = head('POST /webhooks/v3', headers).replace('\r\n\r\n', `\r\n${name}: ${value}\r\n\r\n`)
    expect(await exchange(url, twice + BODY)).toMatch(/^HTTP\/1\.1 401 /)
    expect(deliveries).toEqual([])
  })

  it.each([
    [
      -412,
      SECRET,
      'timestamp_out_of_tolerance',
      'the signature is right but its time is 412 s behind ours: check the clocks',
    ],
    [412, SECRET, 'timestamp_out_of_tolerance', expect.stringContaining('412 s ahead of ours')],
    // A wrong secret, not a wrong clock, where both are wrong.
    [-412, 'whsec_x', 'signature_invalid', expect.stringContaining('wrong secret')],
  ])(
    'is logged with what the operator needs and the caller must not see: %i s off, by %s',
    async (skewSeconds, secret, code, hint) => {
      const { url, logged } = await openFront()
      const headers = signed(BODY, { secret, timestamp: String(NOW_SECONDS + skewSeconds) })
      const answer = await request(url).post('/webhooks/v3').set(headers).send(BODY)
      // The id of a request is random, and may hold these digits.
      const { requestId: _, ...problem } = answer.body
      expect(JSON.stringify(problem)).not.toContain('412')
      const told = { endpoint: 'v3', code, skewSeconds, expiredSecret: false, address: '127.0.0.1', hint }
      expect(logged).toMatchObject([{ level: 40, ...told }])
      const said = JSON.stringify(logged) + answer.text
      for (const never of [BODY, headers['x-webhook-signature'], SECRET]) expect(said).not.toContain(never)
    },
  )

  it('shows in the log, and there alone, that a rotated-out secret signed it', async () => {
    const { url, logged } = await openFront()
    const answer = await request(url)
      .post('/webhooks/v3')
      .set(signed(BODY, { secret: OLD_SECRET }))
      .send(BODY)
    expect(answer.text).not.toMatch(/notAfter|rotated|expired/)
    expect(logged).toMatchObject([{ code: 'signature_invalid', expiredSecret: true }])
    expect(JSON.stringify(logged)).not.toContain(SECRET)
    expect(JSON.stringify(logged)).not.toContain(OLD_SECRET)
  })

  it('is counted by endpoint and code, with how far the clock was off', async () => {
    const { url, metricsUrl } = await openFront({ addresses: WITH_METRICS })
    const ahead = signed(BODY, { timestamp: String(NOW_SECONDS + 500) })
    await request(url).post('/webhooks/v3').set(ahead).send(BODY)
    const { text } = await request(metricsUrl).get('/metrics')
    expect(text).toContain(
      'latchkey_signatures_rejected_total{endpoint="v3",code="timestamp_out_of_tolerance"} 1',
    )
    expect(text).toContain('latchkey_clock_skew_seconds{endpoint="v3"} 500')
  })
})

describe('a delivery that is refused before its signature is looked at', () => {
  const TOO_LARGE = Buffer.alloc(1024 * 1024 + 1)
  const post = (url: string, path: string, body: Buffer, headers = {}) =>
    fetch(`${url}/webhooks/${path}`, { method: 'POST', body: new Uint8Array(body), headers })
  const counted = async (metricsUrl: string) =>
    (await (await fetch(`${metricsUrl}/metrics`)).text())
      .split('\n')
      .filter((line) => line.startsWith('latchkey_deliveries_refused_total{'))

  it('is counted by why, and logged with what the operator can do about it', async () => {
    const { url, metricsUrl, logged } = await openFront({ addresses: WITH_METRICS })
    expect((await post(url, 'v3-typo', Buffer.from(BODY), signed(BODY))).status).toBe(404)
    expect((await post(url, 'v3', TOO_LARGE)).status).toBe(413)
    expect((await post(url, 'v3', Buffer.from(BODY), { 'content-encoding': 'gzip' })).status).toBe(415)
    const broken = { ...signed(BODY), 'transfer-encoding': 'chunked' }
    expect(await exchange(url, `${head('POST /webhooks/v3', broken)}no length\r\n`)).toMatch(
      /^HTTP\/1\.1 400 /,
    )

    const refused = { level: 40, msg: 'delivery refused', address: '127.0.0.1' }
    await eventually(() => expect(logged).toHaveLength(4))
    expect(logged).toMatchObject([
      {
        ...refused,
        code: 'endpoint_not_found',
        hint: 'its path does not end with the name of an endpoint: send it to /webhooks/ and one of v3',
      },
      { ...refused, endpoint: 'v3', code: 'body_too_large', hint: expect.any(String) },
      { ...refused, endpoint: 'v3', code: 'encoding_not_supported', hint: expect.any(String) },
      { ...refused, endpoint: 'v3', code: 'body_incomplete', hint: expect.any(String) },
    ])
    expect(JSON.stringify(logged)).not.toContain('typo')
    expect(await counted(metricsUrl)).toEqual([
      'latchkey_deliveries_refused_total{code="endpoint_not_found"} 1',
      'latchkey_deliveries_refused_total{code="body_too_large"} 1',
      'latchkey_deliveries_refused_total{code="encoding_not_supported"} 1',
      'latchkey_deliveries_refused_total{code="body_incomplete"} 1',
    ])
  })

  it('is logged with the address of its sender, who has gone', async () => {
    const { url, logged } = await openFront()
    const connection = await openConnection(url)
    connection.send(`${head('POST /webhooks/v3', { ...signed(BODY), 'content-length': '100' })}{`)
    connection.destroy()
    await eventually(() => expect(logged).toMatchObject([{ code: 'body_incomplete', address: '127.0.0.1' }]))
  })

  it('is logged up to the limit of its address and once more, and answered and counted as ever', async () => {
    const { url, metricsUrl, logged } = await openFront({ addresses: WITH_METRICS })
    for (let attempt = 0; attempt < 40; attempt += 1) {
      const answer = await post(url, `name-${attempt}`, Buffer.from(BODY))
      expect(answer.status).toBe(404)
      expect(await answer.json()).toMatchObject({ code: 'endpoint_not_found' })
    }
    expect(logged).toHaveLength(31)
    expect(logged.at(-1)).toMatchObject({
      msg: 'delivery refused: too many from this address, no longer logging them',
    })
    expect(await counted(metricsUrl)).toEqual([
      'latchkey_deliveries_refused_total{code="endpoint_not_found"} 40',
    ])
    // Nor does it count among the signatures that failed.
    expect((await post(url, 'v3', Buffer.from('{}'), signed(BODY))).status).toBe(401)
  })
})

describe('a request that is no delivery', () => {
  it('to an unknown endpoint is answered 404, whatever its method', async () => {
    const { url, logged } = await openFront()
    for (const method of ['GET', 'PUT']) {
      const answer = await fetch(`${url}/webhooks/nobody`, { method })
      expect(answer.status).toBe(404)
      expect(await answer.json()).toMatchObject({ code: 'endpoint_not_found' })
    }
    expect(logged).toEqual([])
  })
})
