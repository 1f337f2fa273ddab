import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { bytesBeingRead, MAX_BODY_BYTES } from '../../src/handlers/body.js'
import { eventually } from '../setup/eventually.js'
import { apiKey, bearer, FREE_PORT, openFront, signed } from './daemon-front.js'
import { exchange, head, openConnection } from './raw-connection.js'

const TOO_LARGE = Buffer.alloc(MAX_BODY_BYTES + 1, 'a')

/** What a sender is answered that listens only after everything is sent. */
async function answerOnceSent(start: string, ...pieces: readonly Buffer[]): Promise<unknown> {
  const { url } = await openFront()
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  const reset = new Promise((_resolve, reject) => socket.on('error', reject))
  socket.write(start)
  const sent = Promise.all(pieces.map((piece) => new Promise((resolve) => socket.write(piece, resolve))))
  await Promise.race([sent, reset])
  return Promise.race([text(socket), reset])
}

describe('a body over the limit', () => {
  it('is refused by its announced length, before it is sent', async () => {
    const { url } = await openFront()
    const connection = await openConnection(url)
    connection.send(head('POST /webhooks/v3', { 'content-length': '999999999999' }))
    await connection.until('"code":"body_too_large"')
    expect(connection.received()).toMatch(/^HTTP\/1\.1 413 /)
    expect(connection.received()).toMatch(/\r\nConnection: close\r\n/i)
  })

  it.each([
    ['announced', { 'content-length': String(TOO_LARGE.length) }, TOO_LARGE],
    [
      'chunked',
      { 'transfer-encoding': 'chunked' },
      Buffer.concat([
        Buffer.from(`${TOO_LARGE.length.toString(16)}\r\n`),
        TOO_LARGE,
        Buffer.from('\r\n0\r\n\r\n'),
      ]),
    ],
  ])('is answered and its connection closed, when %s and sent whole', async (_name, headers, body) => {
    const { url, deliveries } = await openFront()
    const bytes = Buffer.concat([
      Buffer.from(head('POST /webhooks/v3', { ...headers, ...signed(TOO_LARGE) })),
      body,
    ])
    const answer = await exchange(url, bytes)
    expect(answer).toMatch(/^HTTP\/1\.1 413 /)
    expect(answer).toContain('"code":"body_too_large"')
    expect(deliveries).toEqual([])
    expect(bytesBeingRead()).toBe(0)
  })

  it('is not one that has just as many bytes in chunks', async () => {
    const { url, deliveries } = await openFront()
    const body = TOO_LARGE.subarray(1)
    const headers = { ...signed(body), 'transfer-encoding': 'chunked', connection: 'close' }
    const chunk = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`
    expect(await exchange(url, head('POST /webhooks/v3', headers) + chunk)).toMatch(/^HTTP\/1\.1 200 /)
    expect(deliveries).toHaveLength(1)
  })

  it('is answered even to a sender that listens only after everything is sent', async () => {
    const length = 32 * MAX_BODY_BYTES
    const start = head('POST /webhooks/v3', { 'content-length': String(length) })
    expect(await answerOnceSent(start, Buffer.alloc(length, 'a'))).toMatch(/^HTTP\/1\.1 413 /)
  })

  it('is one in too many pieces, too, however small', async () => {
    const { url, deliveries } = await openFront()
    const connection = await openConnection(url)
    connection.send(head('POST /webhooks/v3', { ...signed('{}'), 'transfer-encoding': 'chunked' }))
    connection.send('1\r\na\r\n'.repeat(16_385))
    await connection.until('"code":"body_too_large"')
    expect(connection.received()).toMatch(/^HTTP\/1\.1 413 /)
    // Nor is the rest of such a body read for long.
    connection.send('1\r\na\r\n'.repeat(16_385))
    await connection.closed
    expect(deliveries).toEqual([])
  })

  it('is cut off when it never ends', async () => {
    const { url } = await openFront()
    const connection = await openConnection(url)
    connection.send(head('POST /webhooks/v3', { ...signed(TOO_LARGE), 'transfer-encoding': 'chunked' }))
    connection.send(`${TOO_LARGE.length.toString(16)}\r\n`)
    connection.send(TOO_LARGE)
    expect(await connection.closed).toMatch(/^HTTP\/1\.1 413 /)
  })
})

describe('a delivery whose headers prove nothing', () => {
  const good = signed('{}')
  const { 'x-webhook-signature': signature, 'x-webhook-timestamp': timestamp } = good
  const unsigned: [name: string, headers: Record<string, string>, code: string][] = [
    ['no signature', { 'x-webhook-timestamp': String(timestamp) }, 'signature_missing'],
    ['a malformed signature', { ...good, 'x-webhook-signature': 'v1=abcd' }, 'signature_invalid'],
    ['no timestamp', { 'x-webhook-signature': String(signature) }, 'timestamp_invalid'],
    ['a malformed timestamp', { ...good, 'x-webhook-timestamp': '12abc' }, 'timestamp_invalid'],
  ]

  it.each(unsigned)('is refused before any of its body comes: %s', async (_name, headers, code) => {
    const { url, logged } = await openFront()
    const connection = await openConnection(url)
    connection.send(head('POST /webhooks/v3', { ...headers, 'content-length': '100' }))
    await connection.until(`"code":"${code}"`)
    expect(connection.received()).toMatch(/^HTTP\/1\.1 401 /)
    expect(connection.received()).toMatch(/\r\nConnection: close\r\n/i)
    expect(logged).toMatchObject([{ msg: 'delivery refused', endpoint: 'v3', code, address: '127.0.0.1' }])
  })

  it('is refused as too large or compressed first, where it says that it is', async () => {
    const { url } = await openFront()
    const large = await openConnection(url)
    large.send(head('POST /webhooks/v3', { 'content-length': String(TOO_LARGE.length) }))
    await large.until('"code":"body_too_large"')
    const compressed = await openConnection(url)
    compressed.send(head('POST /webhooks/v3', { 'content-length': '100', 'content-encoding': 'gzip' }))
    await compressed.until('"code":"encoding_not_supported"')
  })

  it('is answered even where its sender listens only after everything is sent', async () => {
    const start = head('POST /webhooks/v3', { 'transfer-encoding': 'chunked' })
    const chunk = Buffer.from(`100000\r\n${'a'.repeat(MAX_BODY_BYTES)}\r\n`)
    expect(await answerOnceSent(start, ...Array<Buffer>(32).fill(chunk))).toMatch(/^HTTP\/1\.1 401 /)
  })
})

describe('the bodies that are being read', () => {
  const FORGED = signed('{}', { secret: 'whsec_wrong' })
  const LARGE = Buffer.alloc(MAX_BODY_BYTES, 'a')
  const deliver = (url: string, body: Buffer) =>
    fetch(`${url}/webhooks/v3`, { method: 'POST', headers: signed(body), body: new Uint8Array(body) })

  it('hold what they sent and no more, however it is cut', async () => {
    const { url, deliveries } = await openFront()
    const bytes = 2_000
    const connection = await openConnection(url)
    connection.send(
      head('POST /webhooks/v3', { ...signed(LARGE.subarray(0, bytes)), 'transfer-encoding': 'chunked' }),
    )
    connection.send('1\r\na\r\n'.repeat(bytes))
    await eventually(() => expect(bytesBeingRead()).toBeGreaterThanOrEqual(bytes))
    expect(bytesBeingRead()).toBeLessThan(2 * bytes)
    connection.send('0\r\n\r\n')
    await connection.until('"disposition":"applied"')
    expect(deliveries[0]?.body.equals(LARGE.subarray(0, bytes))).toBe(true)
    expect(bytesBeingRead()).toBe(0)
  })

  it('leave room for events, however many large ones come at once, and give it back', async () => {
    const { url, webhooksUrl, metricsUrl, deliveries, logged } = await openFront({
      addresses: { ...FREE_PORT, trustProxy: 0, webhooks: FREE_PORT, metrics: FREE_PORT },
      apiKeys: () => [apiKey('app')],
    })
    const held = 48
    const heads = head('POST /webhooks/v3', { ...FORGED, 'content-length': String(LARGE.length) })
    const senders = await Promise.all(Array.from({ length: held }, () => openConnection(webhooksUrl)))
    for (const sender of senders) sender.send(Buffer.concat([Buffer.from(heads), LARGE.subarray(1)]))
    await eventually(() => expect(bytesBeingRead()).toBe(held * LARGE.length))

    const refused = await deliver(webhooksUrl, LARGE)
    expect(refused.status).toBe(503)
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(await refused.json()).toMatchObject({ code: 'not_stored' })
    const asked = await fetch(`${url}/entitlements/check`, {
      method: 'POST',
      headers: { ...bearer('app'), 'content-type': 'application/json' },
      body: new Uint8Array(LARGE),
    })
    // Whoever has a key finds room: it is the JSON that is wrong.
    expect(asked.status).toBe(400)
    expect(logged).toMatchObject([{ msg: 'delivery refused', code: 'not_stored', endpoint: 'v3' }])

    const events = Array.from({ length: 64 }, () => deliver(webhooksUrl, LARGE.subarray(0, 8 * 1024)))
    for (const answer of await Promise.all(events)) expect(answer.status).toBe(200)
    expect(deliveries).toHaveLength(64)
    const metrics = await (await fetch(`${metricsUrl}/metrics`)).text()
    expect(metrics).toContain(`latchkey_bodies_being_read_bytes ${held * LARGE.length}`)
    expect(metrics).toContain('latchkey_deliveries_refused_total{code="not_stored"} 1')

    for (const sender of senders) sender.destroy()
    await eventually(() => expect(bytesBeingRead()).toBe(0))
    expect((await deliver(webhooksUrl, LARGE)).status).toBe(200)
  })
})

describe('a compressed body', () => {
  const REFUSED = { code: 'encoding_not_supported' }

  it.each([
    ...['gzip', 'br', 'GZIP', 'identity, gzip'].map((encoding) => [encoding, 415, REFUSED, 0] as const),
    ['Identity', 200, { received: true }, 1] as const,
  ])('by %s is answered with %i', async (encoding, status, told, delivered) => {
    const { url, deliveries } = await openFront()
    const headers = { ...signed('{}'), 'content-encoding': encoding }
    const answer = await fetch(`${url}/webhooks/v3`, { method: 'POST', headers, body: '{}' })
    expect([answer.status, await answer.json()]).toMatchObject([status, told])
    expect(deliveries).toHaveLength(delivered)
  })
})

describe('a body that ends too early', () => {
  it('reaches nobody when its sender disconnects, and the next delivery is served', async () => {
    const { url, deliveries, logged } = await openFront()
    const connection = await openConnection(url)
    connection.send(head('POST /webhooks/v3', { ...signed('{}'), 'content-length': '2' }))
    connection.send('{')
    connection.destroy()
    await connection.closed

    const answer = await fetch(`${url}/webhooks/v3`, { method: 'POST', headers: signed('{}'), body: '{}' })
    expect(answer.status).toBe(200)
    expect(deliveries).toHaveLength(1)
    const refused = [{ msg: 'delivery refused', code: 'body_incomplete' }]
    await eventually(() => expect(logged).toMatchObject(refused))
  })

  it('reaches nobody when its sender only stops sending', async () => {
    const { url, deliveries } = await openFront()
    const connection = await openConnection(url)
    connection.send(head('POST /webhooks/v3', { ...signed('{}'), 'content-length': '2' }))
    connection.send('{')
    connection.end()
    expect(await connection.closed).toMatch(/^HTTP\/1\.1 400 /)
    expect(deliveries).toEqual([])
  })

  it('reaches nobody when a chunk is malformed', async () => {
    const { url, deliveries } = await openFront()
    const headers = { ...signed('{}'), 'transfer-encoding': 'chunked' }
    const answer = await exchange(url, `${head('POST /webhooks/v3', headers)}2\r\n{}\r\nnot hex\r\n`)
    expect(answer).toMatch(/^HTTP\/1\.1 400 /)
    expect(deliveries).toEqual([])
  })
})

it('a sender that leaves before its answer does no harm', async () => {
  let arrived = () => {}
  let finish = () => {}
  const ingesting = new Promise<void>((resolve) => {
    arrived = resolve
  })
  const { url } = await openFront({
    ingest: () => {
      arrived()
      return new Promise((resolve) => {
        finish = () => resolve({ id: 'evt_1', disposition: 'applied' })
      })
    },
  })
  const connection = await openConnection(url)
  connection.send(`${head('POST /webhooks/v3', { ...signed('{}'), 'content-length': '2' })}{}`)
  await ingesting
  connection.destroy()
  await connection.closed
  finish()

  const answer = await fetch(`${url}/healthz`)
  expect(answer.status).toBe(200)
})
