import { request } from 'node:http'
import { describe, expect, it } from 'vitest'
import { API_KEY, type AskedDaemon, act, rewriteConfig, serveHere } from '../world.js'
import { consoleConfig, serveConsole, signIn } from './signed-in.js'

const HOUR_MS = 3_600_000
const START = Date.parse('2026-03-01T12:00:00Z')

interface Sent {
  readonly method?: string
  readonly cookie?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | URLSearchParams
}

/** Sends a request as no browser would. */
async function send({ url }: Pick<AskedDaemon, 'url'>, path: string, sent: Sent = {}) {
  const { method = 'GET', cookie, headers = {}, body } = sent
  const answer = await fetch(`${url}${path}`, {
    method,
    redirect: 'manual',
    headers: { ...(cookie !== undefined && { Cookie: cookie }), ...headers },
    ...(body !== undefined && { body }),
  })
  const text = await answer.text()
  const isJson = /json/.test(answer.headers.get('content-type') ?? '')
  return { status: answer.status, headers: answer.headers, text, json: isJson ? JSON.parse(text) : null }
}

/** `fetch` sends no Host of one's own. */
function sendTo({ url }: Pick<AskedDaemon, 'url'>, host: string): Promise<{ readonly status: number }> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url)
    const req = request({ hostname, port, path: '/console', headers: { Host: host } }, (res) => {
      res.resume()
      resolve({ status: res.statusCode ?? 0 })
    })
    req.on('error', reject).end()
  })
}

/** False: it ended without this text. */
async function readUntil(
  reader: ReadableStreamDefaultReader<Uint8Array> | undefined,
  text: string,
): Promise<boolean> {
  let seen = ''
  for (;;) {
    const { done, value } = (await reader?.read()) ?? { done: true }
    if (done) return false
    seen += new TextDecoder().decode(value)
    if (seen.includes(text)) return true
  }
}

const refused = (status: number, code: string) => ({ status, json: { status, code } })
const renewedBy = ({ headers }: { readonly headers: Headers }): string =>
  headers.get('set-cookie')?.split(';')[0] ?? ''

describe('a session of the console', () => {
  it('is a cookie that no script reads, that goes to the console alone, and that the API itself does not take', async () => {
    const daemon = await serveConsole()
    const answer = await send(daemon, '/console/session', {
      method: 'POST',
      headers: { Origin: daemon.url },
      body: new URLSearchParams({ key: ` ${API_KEY}\n` }),
    })
    expect([answer.status, answer.headers.get('location'), answer.headers.get('cache-control')]).toEqual([
      303,
      '/console/',
      'no-store',
    ])
    expect(answer.headers.get('set-cookie')).toMatch(
      /^latchkey-console=[\w.-]+; Path=\/console; Max-Age=28800; HttpOnly; SameSite=Strict$/,
    )
    expect(answer.headers.get('set-cookie')).not.toContain(API_KEY)
    const cookie = renewedBy(answer)
    expect(await send(daemon, '/console/api/status', { cookie })).toMatchObject({ status: 200 })
    expect(await send(daemon, '/status', { cookie })).toMatchObject(refused(401, 'unauthorized'))
    expect(daemon.logged()).toContainEqual(
      expect.objectContaining({ msg: 'signed in to the console', keyName: 'operator' }),
    )
    expect(JSON.stringify(daemon.logged())).not.toContain(API_KEY)
  })

  it('is marked Secure behind a proxy that speaks TLS, which names the host, too', async () => {
    const daemon = await serveConsole(consoleConfig({}, { server: { trustProxy: 1 } }))
    const proxied = { 'X-Forwarded-Proto': 'https', 'X-Forwarded-Host': 'latchkey.example.com' }
    const post = (origin: string) =>
      send(daemon, '/console/session', {
        method: 'POST',
        headers: { ...proxied, Origin: origin },
        body: new URLSearchParams({ key: API_KEY }),
      })
    expect((await post('https://latchkey.example.com')).headers.get('set-cookie')).toMatch(/; Secure$/)
    expect(await post('http://latchkey.example.com')).toMatchObject(refused(403, 'origin_refused'))
    expect(await post('https://example.com')).toMatchObject(refused(403, 'origin_refused'))
  })

  it('has the rights of its key: scopes, environments and limit, and its name in what it does', async () => {
    const daemon = await serveConsole(
      consoleConfig({ lk_reader: { scopes: ['read'] }, lk_sandbox: { environments: ['sandbox'] } }),
    )
    await act(daemon, 'POST', '/customers/cus_1/grants', { productId: 'pro_gold', reason: 'a test' })
    const reader = await signIn(daemon, 'lk_reader')
    expect(await send(daemon, '/console/api/entitlements/cus_1', { cookie: reader })).toMatchObject({
      status: 200,
    })
    expect(await send(daemon, '/console/api/status', { cookie: reader })).toMatchObject(
      refused(403, 'forbidden'),
    )
    expect(await send(daemon, '/console/api/console/session', { cookie: reader })).toMatchObject({
      json: { key: 'lk_reader', scopes: ['read'], environments: ['live', 'sandbox'] },
    })

    const sandbox = await signIn(daemon, 'lk_sandbox')
    const live = '/console/api/entitlements/cus_1?environment=live'
    expect(await send(daemon, live, { cookie: sandbox })).toMatchObject(refused(403, 'forbidden'))
    const own = await send(daemon, '/console/api/console/session', { cookie: sandbox })
    expect(own.json.endpoints).toEqual([{ name: 'sandbox', environment: 'sandbox' }])
    const found = await send(daemon, '/console/api/customers?query=cus', { cookie: sandbox })
    expect(found.json.items).toEqual([])

    const cookie = await signIn(daemon)
    const granted = await send(daemon, '/console/api/customers/cus_2/grants', {
      method: 'POST',
      cookie,
      headers: { Origin: daemon.url, 'Content-Type': 'application/json' },
      body: JSON.stringify({ productId: 'pro_gold', reason: 'from the console' }),
    })
    expect(granted.status).toBe(201)
    const event = await send(daemon, `/console/api/events/${granted.json.eventId}`, { cookie })
    expect(event.text).toContain('"actor":"operator"')
    const keys = await send(daemon, '/console/api/keys', { cookie })
    const used = keys.json.keys.filter((one: { lastUsedAt: string | null }) => one.lastUsedAt !== null)
    expect(used.map((one: { name: string }) => one.name).sort()).toEqual([
      'lk_reader',
      'lk_sandbox',
      'operator',
    ])
  })

  it('ends after eight hours in which nobody used it, and not before', async () => {
    let now = START
    const daemon = await serveConsole(consoleConfig(), () => now)
    const first = await signIn(daemon)
    const ask = (cookie: string, headers = {}) => send(daemon, '/console/api/keys', { cookie, headers })
    now += 60_000
    expect(renewedBy(await ask(first))).toBe('')
    now = START + 7 * HOUR_MS
    // What the page asks for by itself keeps nothing alive.
    expect(renewedBy(await ask(first, { 'X-Console-Unattended': '1' }))).toBe('')
    const second = renewedBy(await ask(first))
    expect(second).not.toBe('')
    now = START + 8 * HOUR_MS + 1
    expect(await ask(first)).toMatchObject(refused(401, 'session_ended'))
    expect(await ask(second)).toMatchObject({ status: 200 })
    now = START + 15 * HOUR_MS + 1
    expect(await ask(second)).toMatchObject(refused(401, 'session_ended'))
  })

  it('takes its streams along when it ends', async () => {
    let now = START
    const daemon = await serveConsole(consoleConfig(), () => now)
    const Cookie = await signIn(daemon)
    const stream = await fetch(`${daemon.url}/console/api/changes/stream`, { headers: { Cookie } })
    expect(stream.status).toBe(200)
    const reader = stream.body?.getReader()
    expect(new TextDecoder().decode((await reader?.read())?.value)).toContain('retry:')
    await act(daemon, 'POST', '/customers/cus_1/grants', { productId: 'pro_gold', reason: 'a test' })
    expect(await readUntil(reader, 'event: change')).toBe(true)
    now = START + 8 * HOUR_MS
    await act(daemon, 'POST', '/customers/cus_2/grants', { productId: 'pro_gold', reason: 'a test' })
    expect(await readUntil(reader, 'cus_2')).toBe(false)
  })

  it('ends with its key: revoked, expired, or replaced and past its grace', async () => {
    let now = START
    const daemon = await serveConsole(consoleConfig({ lk_one: {}, lk_two: {} }), () => now)
    const [one, two] = [await signIn(daemon, 'lk_one'), await signIn(daemon, 'lk_two')]
    const ask = (cookie: string) => send(daemon, '/console/api/keys', { cookie })
    const { api, ...rest } = consoleConfig({ lk_one: {}, lk_two: {} })
    const [operator, , second] = api.keys
    const notAfter = new Date(START + HOUR_MS).toISOString()
    const rotated = {
      ...second,
      hash: `sha256:${'ab'.repeat(32)}`,
      previous: { hash: second?.hash, notAfter },
    }
    rewriteConfig(daemon.folder, { ...rest, api: { keys: [operator, rotated] } })
    await daemon.reload()
    expect(await ask(one)).toMatchObject(refused(401, 'session_ended'))
    expect(await ask(two)).toMatchObject({ status: 200 })
    now = START + HOUR_MS
    expect(await ask(two)).toMatchObject(refused(401, 'session_ended'))
  })

  it('ends where it is signed out, copies of its cookie included; a restart does not end it', async () => {
    const daemon = await serveConsole()
    const [one, two] = [await signIn(daemon), await signIn(daemon)]
    const out = await send(daemon, '/console/session', {
      method: 'DELETE',
      cookie: one,
      headers: { Origin: daemon.url },
    })
    expect([out.status, out.headers.get('set-cookie')]).toEqual([
      200,
      'latchkey-console=; Path=/console; Max-Age=0; HttpOnly; SameSite=Strict',
    ])
    expect(await send(daemon, '/console/api/keys', { cookie: one })).toMatchObject(
      refused(401, 'session_ended'),
    )
    await daemon.stop()
    const again = await serveHere(daemon.folder)
    expect(await send(again, '/console/api/keys', { cookie: two })).toMatchObject({ status: 200 })
  })

  it.each([
    ['nothing', undefined],
    ['an empty cookie', 'latchkey-console='],
    ['nonsense', 'latchkey-console=a.b.c.d'],
    ['too many parts', 'latchkey-console=a.b.c.d.e'],
    ['the name of the local key', 'latchkey-console=local.a.mwwq3mye.AAAA'],
  ])('is not made by %s', async (_, cookie) => {
    const daemon = await serveConsole()
    const answer = await send(daemon, '/console/api/keys', cookie === undefined ? {} : { cookie })
    expect(answer).toMatchObject(refused(401, 'session_ended'))
  })

  it('is not made by another seal, a later time or another key', async () => {
    const daemon = await serveConsole(consoleConfig({ lk_reader: { scopes: ['read'] } }))
    const [operator, reader] = [await signIn(daemon), await signIn(daemon, 'lk_reader')]
    const [name, ...rest] = reader.split('=')[1]?.split('.') ?? []
    const [other, id, time, seal = ''] = operator.split('=')[1]?.split('.') ?? []
    for (const forged of [
      [other, ...rest],
      [name, id, time, seal],
      [other, 'another', time, seal],
      [other, id, `${time}1`, seal],
      [other, id, (Number.parseInt(time ?? '', 36) + 1).toString(36), seal],
      [other, id, time, seal.slice(1)],
      [other, id, time, ''],
    ]) {
      const cookie = `latchkey-console=${forged.join('.')}`
      expect(await send(daemon, '/console/api/keys', { cookie })).toMatchObject(refused(401, 'session_ended'))
    }
  })
})

describe('a request that another page sends', () => {
  const FOREIGN = [
    { Origin: 'https://example.com' },
    { Origin: 'null' },
    { Origin: 'http://127.0.0.1:1' },
    { 'Sec-Fetch-Site': 'cross-site' },
    { 'Sec-Fetch-Site': 'same-site' },
    {},
  ]
  it.each(FOREIGN)('changes nothing, nor signs anybody in or out: %j', async (headers) => {
    const daemon = await serveConsole()
    const cookie = await signIn(daemon)
    const changes = [
      ['POST', '/console/session', new URLSearchParams({ key: API_KEY })],
      ['DELETE', '/console/session', undefined],
      ['POST', '/console/api/stop', undefined],
      ['PUT', '/console/api/customers/cus_1/blocks', '{"reason":"forged"}'],
    ] as const
    for (const [method, path, body] of changes) {
      const answer = await send(daemon, path, {
        method,
        cookie,
        headers,
        ...(body !== undefined && { body }),
      })
      expect([path, answer]).toMatchObject([path, refused(403, 'origin_refused')])
      expect(answer.headers.get('set-cookie')).toBeNull()
    }
    expect(await send(daemon, '/console/api/customers/cus_1', { cookie })).toMatchObject({ status: 404 })
  })

  it('reads nothing, even where a browser sends the cookie', async () => {
    const daemon = await serveConsole()
    const cookie = await signIn(daemon)
    const headers = { 'Sec-Fetch-Site': 'cross-site' }
    expect(await send(daemon, '/console/api/keys', { cookie, headers })).toMatchObject(
      refused(403, 'origin_refused'),
    )
  })
})

describe('the page', () => {
  it('lets nothing in from elsewhere, is in nobody’s frame, and is never kept', async () => {
    const daemon = await serveConsole()
    for (const path of ['/console', '/console/', '/console/customers/cus_1']) {
      const { status, headers, text } = await send(daemon, path)
      expect(status).toBe(200)
      expect(text).toContain('<title>Latchkey</title>')
      expect(Object.fromEntries(headers)).toMatchObject({
        'content-type': 'text/html; charset=utf-8',
        'cache-control': 'no-store',
        'content-security-policy':
          "default-src 'none';script-src 'self';style-src 'self';connect-src 'self';img-src 'self' data:;form-action 'self';frame-ancestors 'none';base-uri 'none'",
        'x-content-type-options': 'nosniff',
        'x-frame-options': 'DENY',
        'referrer-policy': 'same-origin',
        'cross-origin-opener-policy': 'same-origin',
        'cross-origin-resource-policy': 'same-origin',
      })
    }
  })

  it('names its files by their content: they are kept for good, packed, and nothing else is served', async () => {
    const daemon = await serveConsole()
    const { text } = await send(daemon, '/console')
    const names = [...text.matchAll(/"(\/console\/assets\/[^"]+)"/g)].map(([, name = '']) => name)
    expect(names.length).toBeGreaterThan(3)
    for (const name of names) {
      const packed = await send(daemon, name, { headers: { 'Accept-Encoding': 'gzip' } })
      const plain = await send(daemon, name, { headers: { 'Accept-Encoding': 'identity' } })
      expect(packed.headers.get('content-encoding')).toBe('gzip')
      expect([packed.status, packed.text === plain.text]).toEqual([200, true])
      expect(plain.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
      expect(plain.headers.get('content-security-policy')).not.toBeNull()
    }
    for (const path of ['x', '..%2findex.html', 'app-00000000.js', '%00'])
      expect(await send(daemon, `/console/assets/${path}`)).toMatchObject(refused(404, 'route_not_found'))
    expect(await send(daemon, '/console', { method: 'POST' })).toMatchObject(
      refused(405, 'method_not_allowed'),
    )
  })

  it('is not there where the config says so', async () => {
    const daemon = await serveConsole(consoleConfig({}, { console: false }))
    for (const path of ['/console', '/console/api/status', '/console/link?token=a', '/console/session'])
      expect(await send(daemon, path)).toMatchObject(refused(404, 'route_not_found'))
  })

  it('answers by no name of another machine, since a page elsewhere could have chosen it', async () => {
    const daemon = await serveConsole()
    const { port } = new URL(daemon.url)
    for (const host of [`127.0.0.1:${port}`, `localhost:${port}`, `latchkey.localhost:${port}`, '[::1]'])
      expect([host, (await sendTo(daemon, host)).status]).toEqual([host, 200])
    for (const host of ['example.com', `127.0.0.1.example.com:${port}`, 'a b'])
      expect([host, (await sendTo(daemon, host)).status]).toEqual([host, 403])
    const proxied = await serveConsole(consoleConfig({}, { server: { trustProxy: 1 } }))
    expect((await sendTo(proxied, 'latchkey.example.com')).status).toBe(200)
  })
})

describe('a key that is sent to sign in', () => {
  const tryKey = (daemon: AskedDaemon, key: string, headers = {}) =>
    send(daemon, '/console/session', {
      method: 'POST',
      headers: { Origin: daemon.url, ...headers },
      body: new URLSearchParams({ key, next: '/customers/cus_1?environment=sandbox' }),
    })

  it('leads on to the view that was asked for, which is none of another place', async () => {
    const daemon = await serveConsole()
    expect((await tryKey(daemon, API_KEY)).headers.get('location')).toBe(
      '/console/customers/cus_1?environment=sandbox',
    )
    for (const next of [
      '//example.com',
      'https://example.com',
      '\\\\example.com',
      '/a\r\nX: y',
      '@example.com',
      '/../../docs',
      '/%2e%2e/docs',
    ]) {
      const answer = await send(daemon, '/console/session', {
        method: 'POST',
        headers: { Origin: daemon.url },
        body: new URLSearchParams({ key: API_KEY, next }),
      })
      const { origin, pathname } = new URL(answer.headers.get('location') ?? '', daemon.url)
      expect([next, origin, pathname.startsWith('/console/')]).toEqual([next, daemon.url, true])
    }
  })

  it('is counted where it is wrong, as anywhere else', async () => {
    const daemon = await serveConsole()
    for (let i = 0; i < 30; i += 1)
      expect(await tryKey(daemon, `lk_wrong_${i}`)).toMatchObject(refused(401, 'unauthorized'))
    expect(await tryKey(daemon, 'lk_wrong')).toMatchObject(refused(429, 'too_many_wrong_keys'))
    const shown = await tryKey(daemon, 'lk_wrong', { Accept: 'text/html' })
    expect([shown.status, shown.headers.get('location')]).toEqual([
      303,
      '/console/sign-in?problem=too_many_wrong_keys&next=%2Fcustomers%2Fcus_1%3Fenvironment%3Dsandbox',
    ])
    expect(await tryKey(daemon, API_KEY)).toMatchObject({ status: 303 })
  })
})
