import { createServer } from 'node:http'
import { connect } from 'node:net'
import { pino } from 'pino'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createApp } from '../../src/handlers/mount.js'
import { createServer as createHttp, leaveBound, markProved } from '../../src/handlers/server.js'
import type { Receipt } from '../../src/ingest/delivery.js'
import { eventually } from '../setup/eventually.js'
import { portOf } from '../setup/port-of.js'
import { bearer, FREE_PORT, openFront, signed } from './daemon-front.js'
import { exchange, head, openConnection, type RawConnection } from './raw-connection.js'

const DELIVERY = `${head('POST /webhooks/v3', { ...signed('{}'), 'content-length': '2' })}{}`

/** A front whose deliveries wait until the test lets them through. */
async function openHeldFront() {
  let arrived = () => {}
  let release: (receipt: Receipt) => void = () => {}
  const ingesting = new Promise<void>((resolve) => {
    arrived = resolve
  })
  const receipt = new Promise<Receipt>((resolve) => {
    release = resolve
  })
  const front = await openFront({
    ingest: () => {
      arrived()
      return receipt
    },
  })
  return { ...front, ingesting, release: () => release({ id: 'evt_1', disposition: 'applied' }) }
}

describe('a connection', () => {
  it('serves several requests, hot and plain', async () => {
    const { url } = await openFront()
    const connection = await openConnection(url)
    connection.send(DELIVERY)
    await connection.until('"disposition":"applied"')
    connection.send(head('GET /healthz'))
    await connection.until('"status":"ok"')
    connection.send(head('GET /entitlements/cus_gold', bearer('app')))
    await connection.until('"entitlements"')
    expect(connection.received().match(/HTTP\/1\.1 200 OK/g)).toHaveLength(3)
  })

  it('stays open after a refusal whose body was read', async () => {
    const { url } = await openFront()
    const connection = await openConnection(url)
    const forged = signed('{}', { secret: 'whsec_wrong' })
    connection.send(`${head('POST /webhooks/v3', { ...forged, 'content-length': '2' })}{}`)
    await connection.until('"code":"signature_invalid"')
    connection.send(DELIVERY)
    await connection.until('"disposition":"applied"')
  })
})

describe('too many connections', () => {
  /** Takes two connections; /proved is for a sender who knows a secret or a key, /stream for one who stays. */
  async function listening() {
    let dropped = 0
    const app = createApp([], pino({ level: 'silent' }))
    const server = await createHttp({
      handle: (req, res) => {
        if (req.url === '/proved') markProved(req)
        if (req.url === '/stream') leaveBound(req)
        app(req, res)
      },
      maxConnections: 2,
      onDropped: () => {
        dropped += 1
      },
    }).listen(FREE_PORT)
    onTestFinished(server.stop)
    const ask = async (connection: RawConnection, path: string): Promise<void> => {
      const before = connection.received().length
      connection.send(head(`GET ${path}`))
      await eventually(() =>
        expect(connection.received().slice(before)).toContain('"code":"route_not_found"'),
      )
    }
    return { open: () => openConnection(server.url), ask, dropped: () => dropped }
  }

  it('are made room for: the oldest is closed that has proved nothing', async () => {
    const { open, ask, dropped } = await listening()
    const first = await open()
    await ask(first, '/nowhere')
    const second = await open()
    await ask(second, '/nowhere')
    const third = await open()
    await first.closed
    for (const connection of [second, third]) await ask(connection, '/nowhere')
    expect(dropped()).toBe(1)
  })

  it('never end one whose sender has proved to know a secret or a key', async () => {
    const { open, ask } = await listening()
    const first = await open()
    await ask(first, '/proved')
    const second = await open()
    await ask(second, '/nowhere')
    const third = await open()
    await second.closed
    await ask(third, '/proved')
    expect(await (await open()).closed).toBe('')
    for (const connection of [first, third]) await ask(connection, '/nowhere')
    third.destroy()
    await eventually(async () => {
      const next = await open()
      next.send(head('GET /nowhere'))
      await next.until('"code":"route_not_found"')
    })
  })

  it('neither count streams nor end them', async () => {
    const { open, ask, dropped } = await listening()
    const all: RawConnection[] = []
    for (const path of ['/stream', '/stream', '/stream', '/nowhere', '/nowhere']) {
      const connection = await open()
      await ask(connection, path)
      all.push(connection)
    }
    for (const one of all) await ask(one, '/nowhere')
    expect(dropped()).toBe(0)
  })
})

describe('what is not HTTP', () => {
  it.each([
    ['nonsense', 'nonsense\r\n\r\n'],
    ['a header without a colon', 'GET /healthz HTTP/1.1\r\nhost: front\r\nbroken\r\n\r\n'],
    [
      'two lengths',
      `POST /webhooks/v3 HTTP/1.1\r\nhost: f\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n`,
    ],
    ['TLS', Buffer.from('16030100a5010000a10303', 'hex')],
  ])('is answered 400 and cut off: %s', async (_name, bytes) => {
    const { url } = await openFront()
    const answer = await exchange(url, bytes)
    expect(answer).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/)
    expect(answer).toContain('"code":"invalid_request"')
  })

  it.each([
    ['headers', head('GET /healthz', { 'x-long': 'x'.repeat(20_000) })],
    ['a path', head(`GET /${'x'.repeat(20_000)}`)],
  ])('is answered 431 for %s beyond measure', async (_name, bytes) => {
    const { url } = await openFront()
    const answer = await exchange(url, bytes)
    expect(answer).toMatch(/^HTTP\/1\.1 431 Request Header Fields Too Large\r\n/)
    expect(answer).toContain('\r\nContent-Type: application/problem+json\r\n')
    expect(answer).toContain('"code":"headers_too_large"')
  })

  it.each(['/healthz', '/webhooks/v3', '/entitlements/cus_gold', '/nowhere'])(
    'includes a request with two Host headers: %s',
    async (path) => {
      const { url } = await openFront()
      const answer = await exchange(url, head(`GET ${path}`, { Host: 'other', connection: 'close' }))
      expect(answer).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/)
      expect(answer).toContain('several Host headers')
    },
  )

  it('is answered after the requests before it on its connection', async () => {
    const { url, ingesting, release } = await openHeldFront()
    const connection = await openConnection(url)
    connection.send(`${DELIVERY}${DELIVERY}nonsense\r\n\r\n`)
    await ingesting
    connection.send('more nonsense\r\n\r\n')
    await fetch(`${url}/healthz`)
    expect(connection.received()).toBe('')
    release()
    const answers = (await connection.closed).split(/(?=HTTP\/1\.1 )/)
    expect(answers).toHaveLength(3)
    for (const answer of answers.slice(0, 2)) {
      expect(answer).toMatch(/^HTTP\/1\.1 200 /)
      expect(answer).toContain('"disposition":"applied"')
    }
    expect(answers[2]).toMatch(/^HTTP\/1\.1 400 /)
  })

  it('is not answered where its request is already', async () => {
    const { url } = await openFront()
    const connection = await openConnection(url)
    connection.send(head('POST /webhooks/nobody', { 'transfer-encoding': 'chunked' }))
    await connection.until('"code":"endpoint_not_found"')
    connection.send('no length\r\n')
    expect((await connection.closed).match(/HTTP\/1\.1 /g)).toHaveLength(1)
  })

  it('takes no answer from a request that has one, by any method', async () => {
    const { url } = await openFront()
    for (const method of ['HEAD', 'POST']) {
      const broken = head(`${method} /webhooks/nobody`, { 'transfer-encoding': 'nonsense' })
      const answer = await exchange(url, broken)
      expect(answer, method).toMatch(/^HTTP\/1\.1 4\d\d /)
      expect(answer.match(/HTTP\/1\.1 /g), method).toHaveLength(1)
    }
  })

  it('does not keep others from being served', async () => {
    const { url } = await openFront()
    const connection = connect(Number(new URL(url).port), '127.0.0.1')
    connection.on('error', () => {})
    connection.write('half a requ')
    connection.resetAndDestroy()
    expect((await fetch(`${url}/healthz`)).status).toBe(200)
  })
})

describe('listening', () => {
  it('fails where the port is taken, and leaves no listener behind', async () => {
    const occupant = createServer()
    const taken = { host: '127.0.0.1', port: await portOf(occupant) }
    await expect(
      openFront({ addresses: { ...FREE_PORT, trustProxy: 0, webhooks: null, metrics: taken } }),
    ).rejects.toMatchObject({ code: 'EADDRINUSE' })
  })
})

describe('a stop', () => {
  it('takes no new connection', async () => {
    const { url, stop } = await openFront()
    await stop()
    await expect(fetch(`${url}/healthz`)).rejects.toMatchObject({ cause: { code: 'ECONNREFUSED' } })
  })

  it('closes at once what is idle and what never said anything, and what is under way once it has ended', async () => {
    const { url, stop, ingesting, release } = await openHeldFront()
    const silent = await openConnection(url)
    const idle = await openConnection(url)
    idle.send(head('GET /healthz'))
    await idle.until('"status":"ok"')
    const busy = await openConnection(url)
    busy.send(DELIVERY)
    await ingesting

    const stopped = stop()
    expect(await silent.closed).toBe('')
    expect(await idle.closed).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
    release()
    // Had the others been closed by force only, then this one too, without its answer.
    const answer = await busy.closed
    expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
    expect(answer).toMatch(/\r\nConnection: close\r\n/i)
    expect(answer).toContain('"disposition":"applied"')
    await stopped
  })

  it('cuts off what does not end', async () => {
    const { url, stop, ingesting } = await openHeldFront()
    const connection = await openConnection(url)
    connection.send(DELIVERY)
    await ingesting
    await stop()
    expect(await connection.closed).toBe('')
  })

  it('may be asked for twice', async () => {
    const { stop } = await openFront()
    await Promise.all([stop(), stop()])
    await stop()
  })
})

describe('a request id', () => {
  const idIn = (answer: string) => /\r\nX-Request-Id: (\S+)\r\n/i.exec(answer)?.[1]

  it.each(['a', 'Root=1-67891233-abcdef012345678912345678', 'f'.repeat(128)])(
    'of the caller, %s, is kept',
    async (id) => {
      const { url } = await openFront()
      const answer = await fetch(`${url}/nowhere`, { headers: { 'x-request-id': id } })
      expect([answer.headers.get('x-request-id'), await answer.json()]).toMatchObject([id, { requestId: id }])
    },
  )

  it.each(['', 'f'.repeat(129), 'a b', 'a"b', 'customer@example.com', 'a, b'])(
    'of the caller, %j, is replaced by one that no other request has',
    async (id) => {
      const { url } = await openFront()
      const ask = async () =>
        (await fetch(`${url}/healthz`, { headers: { 'x-request-id': id } })).headers.get('x-request-id')
      const [first, second] = [await ask(), await ask()]
      expect([first, second]).toEqual([expect.stringMatching(/^[0-9a-f]{12}-\w+$/), expect.any(String)])
      expect(second).not.toBe(first)
    },
  )

  it('is in what is answered before there is a request, and in the log of a refusal', async () => {
    const { url, logged } = await openFront()
    const malformed = await exchange(url, 'no HTTP\r\n\r\n')
    expect(malformed).toContain(`"requestId":"${idIn(malformed)}"`)
    const headers = { ...signed('{}', { secret: 'whsec_wrong' }), 'x-request-id': 'r-1' }
    await fetch(`${url}/webhooks/v3`, { method: 'POST', headers, body: '{}' })
    expect(logged).toMatchObject([{ requestId: 'r-1', code: 'signature_invalid' }])
  })
})

describe('the access log', () => {
  it('has a line for each request, which says nothing of a person', async () => {
    const addresses = { ...FREE_PORT, trustProxy: 0, accessLog: true, webhooks: null, metrics: null }
    const { url, logged } = await openFront({ addresses })
    const id = (name: string) => ({ 'x-request-id': name })
    await fetch(`${url}/entitlements/cus_gold?environment=live`, {
      headers: { ...bearer('app'), ...id('1') },
    })
    await fetch(`${url}/webhooks/v3`, {
      method: 'POST',
      headers: { ...signed('{}'), ...id('2') },
      body: '{}',
    })
    await fetch(`${url}/customers/cus_gold/?email=a%40b.example`, { headers: id('3') })
    await eventually(() => expect(logged).toHaveLength(3))
    const line = { msg: 'request', ms: expect.any(Number), bytes: expect.any(Number) }
    const route = '/entitlements/:customerId'
    expect(logged.map(({ time, level, pid, hostname, ...fields }) => fields)).toEqual([
      { ...line, requestId: '1', method: 'GET', route, status: 200, keyName: 'app' },
      { ...line, requestId: '2', method: 'POST', route: '/webhooks/:endpoint', status: 200, endpoint: 'v3' },
      { ...line, requestId: '3', method: 'GET', route: null, status: 404 },
    ])
  })

  it('marks a request whose caller left', async () => {
    const addresses = { ...FREE_PORT, trustProxy: 0, accessLog: true, webhooks: null, metrics: null }
    const { url, logged } = await openFront({ addresses, ingest: () => new Promise(() => {}) })
    const connection = await openConnection(url)
    connection.send(DELIVERY)
    connection.destroy()
    await eventually(() => expect(logged).toMatchObject([{ route: '/webhooks/:endpoint', aborted: true }]))
  })
})
