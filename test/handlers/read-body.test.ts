import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { MAX_BODY_BYTES } from '../../src/handlers/read-body.js'
import { eventually } from '../setup/eventually.js'
import { openFront, signed } from './daemon-front.js'
import { exchange, head, openConnection } from './raw-connection.js'

const TOO_LARGE = Buffer.alloc(MAX_BODY_BYTES + 1, 'a')

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
  })

  it('is answered even to a sender that listens only after everything is sent', async () => {
    const { url } = await openFront()
    const length = 32 * MAX_BODY_BYTES
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    const reset = new Promise((_resolve, reject) => socket.on('error', reject))
    socket.write(head('POST /webhooks/v3', { 'content-length': String(length) }))
    const sent = new Promise((resolve) => socket.write(Buffer.alloc(length, 'a'), resolve))
    await Promise.race([sent, reset])
    expect(await Promise.race([text(socket), reset])).toMatch(/^HTTP\/1\.1 413 /)
  })

  it('is cut off when it never ends', async () => {
    const { url } = await openFront()
    const connection = await openConnection(url)
    connection.send(head('POST /webhooks/v3', { 'transfer-encoding': 'chunked' }))
    connection.send(`${TOO_LARGE.length.toString(16)}\r\n`)
    connection.send(TOO_LARGE)
    expect(await connection.closed).toMatch(/^HTTP\/1\.1 413 /)
  })
})

describe('a compressed body', () => {
  it.each(['gzip', 'br', 'GZIP', 'identity, gzip'])('by %s is refused', async (encoding) => {
    const { url, deliveries } = await openFront()
    const headers = { ...signed('{}'), 'content-encoding': encoding }
    const answer = await fetch(`${url}/webhooks/v3`, { method: 'POST', headers, body: '{}' })
    expect(answer.status).toBe(415)
    expect(await answer.json()).toMatchObject({ code: 'encoding_not_supported' })
    expect(deliveries).toEqual([])
  })

  it('is not meant by the encoding "identity"', async () => {
    const { url, deliveries } = await openFront()
    const headers = { ...signed('{}'), 'content-encoding': 'Identity' }
    const answer = await fetch(`${url}/webhooks/v3`, { method: 'POST', headers, body: '{}' })
    expect(answer.status).toBe(200)
    expect(deliveries).toHaveLength(1)
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
