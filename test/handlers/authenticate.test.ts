import request from 'supertest'
import { describe, expect, it } from 'vitest'
import { apiKey, bearer, FREE_PORT, NOW, openFront } from './daemon-front.js'
import { exchange } from './raw-connection.js'

it.each([
  ['no header', {}],
  ['an empty one', { authorization: '' }],
  ['a scheme alone', { authorization: 'Bearer' }],
  ['a scheme and a blank', { authorization: 'Bearer ' }],
  ['a scheme and blanks', { authorization: 'Bearer    ' }],
  ['another scheme', { authorization: 'Basic YXBwOg==' }],
  ['a wrong key', bearer('wrong')],
  ['the beginning of a key', bearer('ap')],
  ['the key without its scheme', { authorization: 'app' }],
  ['a key and more', { authorization: 'Bearer app app' }],
  ['the hash of a key', bearer(apiKey('app').sha256)],
])('refuses %s in the same words, for a known and an unknown customer', async (_name, headers) => {
  // Even where the hash of nothing is configured.
  const { url, questions } = await openFront({ apiKeys: () => [apiKey(''), apiKey('app')] })
  const sent = { ...headers, 'x-request-id': 'same' }
  const known = await request(url).get('/entitlements/cus_gold').set(sent)
  const unknown = await request(url).get('/entitlements/cus_nobody').set(sent)
  expect(known.status).toBe(401)
  expect(known.headers['www-authenticate']).toBe('Bearer')
  expect(known.body.code).toBe('unauthorized')
  expect(unknown.text).toBe(known.text)
  expect({ ...unknown.headers, date: '' }).toEqual({ ...known.headers, date: '' })
  expect(questions).toEqual([])
})

it('refuses everybody while no key is configured', async () => {
  const { url } = await openFront({ apiKeys: () => [] })
  expect((await request(url).get('/entitlements/cus_gold').set(bearer('app'))).status).toBe(401)
})

describe('an address that sends wrong keys', () => {
  const status = async (url: string, headers: Record<string, string>, path = '/entitlements/cus_gold?x=1') =>
    (await request(url).get(path).set(headers)).status

  it('is told to wait, while a right key is never limited', async () => {
    const { url } = await openFront()
    const statuses = []
    for (let attempt = 0; attempt < 40; attempt += 1) {
      statuses.push(await status(url, attempt % 2 === 0 ? bearer(`wrong-${attempt}`) : {}))
      expect(await status(url, bearer('app'), '/entitlements/cus_gold')).toBe(200)
    }
    expect(statuses).toEqual([...Array(30).fill(401), ...Array(10).fill(429)])
    const limited = await request(url).get('/metrics').set(bearer('wrong'))
    expect(limited.status).toBe(429)
    expect(Number(limited.headers['retry-after'])).toBeGreaterThan(0)
    expect(limited.body).toMatchObject({ status: 429, code: 'too_many_wrong_keys' })
  })

  it('is logged up to the limit and once more, without the key or whom it asked about', async () => {
    const { url, logged } = await openFront()
    for (let attempt = 0; attempt < 40; attempt += 1) {
      await status(url, attempt === 0 ? {} : bearer('lk_wrong'), '/customers/cus_gold?customer=cus_gold')
    }
    expect(logged).toHaveLength(31)
    const refused = {
      level: 40,
      msg: 'API key refused',
      method: 'GET',
      route: '/customers',
      address: '127.0.0.1',
    }
    expect(logged[0]).toMatchObject({ ...refused, hint: expect.stringContaining('has no key') })
    expect(logged[1]).toMatchObject({ ...refused, hint: expect.stringContaining('not in api.keys') })
    expect(logged[30]).toMatchObject({
      msg: 'API key refused: too many from this address, no longer logging them',
    })
    expect(JSON.stringify(logged)).not.toMatch(/lk_wrong|cus_gold/)
  })

  it('is counted, and does not count among the signatures that failed', async () => {
    const { url, metricsUrl } = await openFront({
      addresses: { ...FREE_PORT, trustProxy: 0, webhooks: null, metrics: FREE_PORT },
    })
    for (let attempt = 0; attempt < 35; attempt += 1) await status(url, bearer('wrong'))
    await status(url, {})
    const { text } = await request(metricsUrl).get('/metrics')
    expect(text).toContain('latchkey_api_keys_refused_total{key="wrong"} 35')
    expect(text).toContain('latchkey_api_keys_refused_total{key="missing"} 1')
    expect((await request(url).post('/webhooks/v3').send('{}')).status).toBe(401)
  })
})

describe('a key that ends', () => {
  it('is refused from that instant on, with what to do, and not a moment sooner', async () => {
    let now = NOW
    const { url, logged } = await openFront({
      apiKeys: () => [
        apiKey('app', { expiresAt: NOW + 1000 }),
        apiKey('old', { expiresAt: NOW, isReplaced: true }),
      ],
      clock: () => now,
    })
    const asked = () => request(url).get('/entitlements/cus_gold').set(bearer('app'))
    now = NOW + 999
    expect((await asked()).status).toBe(200)
    now = NOW + 1000
    const refused = await asked()
    expect([refused.status, refused.headers['www-authenticate'], refused.body]).toMatchObject([
      401,
      'Bearer',
      { code: 'key_expired', detail: expect.stringContaining('latchkey keys rotate') },
    ])
    const { body } = await request(url).get('/entitlements/cus_gold').set(bearer('old'))
    expect(body.detail).toBe('This API key has expired: it was replaced, so use the new key with its name.')
    expect(logged).toMatchObject([
      { msg: 'API key refused', hint: expect.stringContaining('`latchkey keys rotate`') },
      { msg: 'API key refused', hint: expect.stringContaining('use the new key') },
    ])
  })
})

describe('a key with a limit', () => {
  it('may send its burst at once, and then so many a second, whatever other keys send', async () => {
    let now = NOW
    const rateLimit = { perSecond: 0.5, burst: 3 }
    const { url } = await openFront({
      apiKeys: () => [
        apiKey('app', { rateLimit }),
        { ...apiKey('old', { rateLimit, isReplaced: true }), name: 'app' },
        apiKey('other'),
      ],
      clock: () => now,
    })
    const asked = (key: string) => request(url).get('/entitlements/cus_gold').set(bearer(key))
    const statuses = async (...keys: string[]) => {
      const found: number[] = []
      for (const key of keys) found.push((await asked(key)).status)
      return found
    }
    // Before and after a rotation it is one key.
    expect(await statuses('app', 'old', 'app', 'app', 'old', 'other')).toEqual([200, 200, 200, 429, 429, 200])
    const limited = await asked('app')
    expect([limited.headers['retry-after'], limited.body.code]).toEqual(['2', 'rate_limited'])
    now += 1999
    expect(await statuses('app')).toEqual([429])
    now += 1
    expect(await statuses('app', 'app')).toEqual([200, 429])
    now += 3_600_000
    expect(await statuses('app', 'app', 'app', 'app')).toEqual([200, 200, 200, 429])
  })
})

it('follows the keys as they change', async () => {
  let keys = [apiKey('app')]
  const { url } = await openFront({ apiKeys: () => keys })
  const status = async (key: string) => (await request(url).get('/entitlements/c').set(bearer(key))).status
  expect([await status('app'), await status('next')]).toEqual([200, 401])
  keys = [apiKey('next')]
  expect([await status('app'), await status('next')]).toEqual([401, 200])
})

describe('a key that was right before', () => {
  const keys = [apiKey('app'), apiKey('ops', { scopes: ['metrics'] })]

  async function open() {
    const { url } = await openFront({ apiKeys: () => keys })
    return async (...lines: readonly string[]) => {
      const head = ['GET /entitlements/cus_gold HTTP/1.1', 'host: front', 'connection: close', ...lines]
      const answer = await exchange(url, `${head.join('\r\n')}\r\n\r\n`)
      return Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1])
    }
  }

  it('is right again, however its header is written', async () => {
    const ask = await open()
    for (const header of ['Bearer app', 'Bearer app', 'bearer   app', 'BEARER app', 'bearer   app']) {
      expect([header, await ask(`Authorization: ${header}`)]).toEqual([header, 200])
    }
  })

  it.each([
    ['sent twice', ['Authorization: Bearer app', 'authorization: Bearer app']],
    ['sent beside another', ['Authorization: Bearer app', 'Authorization: Bearer other']],
    ['longer', ['Authorization: Bearer app2']],
    ['shorter', ['Authorization: Bearer ap']],
    ['sent in another case', ['Authorization: Bearer APP']],
    ['sent by another scheme', ['Authorization: Basic app']],
  ])('is refused %s, as it was before', async (_name, lines) => {
    const ask = await open()
    for (let time = 0; time < 2; time += 1) {
      expect(await ask(...lines)).toBe(401)
      expect(await ask('Authorization: Bearer app')).toBe(200)
    }
  })

  it('has no more rights than at first', async () => {
    const ask = await open()
    for (let time = 0; time < 2; time += 1) expect(await ask('Authorization: Bearer ops')).toBe(403)
  })
})
