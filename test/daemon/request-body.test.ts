import { brotliCompressSync, gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { exchange, head, openConnection } from '../handlers/raw-connection.js'
import { eventually } from '../setup/eventually.js'
import { BODY, headersOf, lines, NOW_TEXT, post, RIGHT, signature } from './deliveries.js'
import { warnings } from './observed.js'
import type { HeaderLines } from './raw-post.js'
import { ask, runDaemon, send, sharedDaemon } from './running-daemon.js'
import { expectNothingStored, storedEvents } from './stored.js'

const MIB = 1024 * 1024

/** The event above, right signature and all, filled up with blanks to this many bytes. */
function padded(length: number): Buffer {
  return Buffer.from(BODY.padEnd(length))
}

function chunked(body: Buffer, size = 64 * 1024): Buffer {
  const parts: Buffer[] = []
  for (let at = 0; at < body.length; at += size) {
    const part = body.subarray(at, at + size)
    parts.push(Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from('\r\n'))
  }
  return Buffer.concat([...parts, Buffer.from('0\r\n\r\n')])
}

describe('the content type', () => {
  it.each<[name: string, headers: HeaderLines]>([
    ['missing', []],
    ['text/plain', [['Content-Type', 'text/plain']]],
    ['of an odd charset', [['Content-Type', 'application/json; charset=x-nobody-knows']]],
    ['UTF-16, which it is not', [['Content-Type', 'application/json; charset=utf-16le']]],
    ['no content type at all', [['Content-Type', ';;;']]],
    [
      'sent twice',
      [
        ['Content-Type', 'text/html'],
        ['Content-Type', 'image/png'],
      ],
    ],
  ])('decides nothing: %s', async (_name, headers) => {
    const daemon = await runDaemon()
    const answer = await post(daemon, [...lines(NOW_TEXT, RIGHT), ...headers])
    expect(answer.status).toBe(200)
    expect(JSON.parse(answer.text)).toEqual({ received: true, id: 'evt_signed', disposition: 'applied' })
    expect(await storedEvents(daemon)).toMatchObject([{ event_id: 'evt_signed', body: Buffer.from(BODY) }])
  })

  it('makes no text of what is none: it is kept as it came', async () => {
    const daemon = await runDaemon()
    const answer = await post(
      daemon,
      [...lines(NOW_TEXT, signature(NOW_TEXT, 'plain')), ['Content-Type', 'text/plain']],
      'plain',
    )
    expect(JSON.parse(answer.text)).toEqual({ received: true, id: null, disposition: 'quarantined' })
    expect(await storedEvents(daemon)).toMatchObject([{ reason: 'not_json', body: Buffer.from('plain') }])
  })
})

describe('a compressed body', () => {
  const untouched = sharedDaemon()

  it.each([
    ['gzip', gzipSync(BODY)],
    ['br', brotliCompressSync(BODY)],
    ['GZIP', gzipSync(BODY)],
    ['identity, gzip', gzipSync(BODY)],
    ['nobody-knows', Buffer.from(BODY)],
  ])('by %s is refused, however it is signed', async (encoding, body) => {
    const daemon = untouched()
    const answer = await post(
      daemon,
      [...lines(NOW_TEXT, signature(NOW_TEXT, body)), ['Content-Encoding', encoding]],
      body,
    )
    expect(answer.status).toBe(415)
    expect(JSON.parse(answer.text)).toMatchObject({ status: 415, code: 'encoding_not_supported' })
    await expectNothingStored(daemon)
  })
})

describe('the size of a body', () => {
  it.each<[name: string, framing: (body: Buffer) => [Record<string, string>, Buffer]]>([
    ['announced', (body) => [{ 'content-length': String(body.length) }, body]],
    ['chunked', (body) => [{ 'transfer-encoding': 'chunked' }, chunked(body)]],
  ])('may be 1 MiB and not a byte more, %s', async (_name, framing) => {
    const daemon = await runDaemon()
    const deliver = (body: Buffer) => {
      const [framed, bytes] = framing(body)
      const headers = { ...headersOf(body), ...framed, connection: 'close' }
      return exchange(daemon.url, Buffer.concat([Buffer.from(head('POST /webhooks/live', headers)), bytes]))
    }
    const refused = await deliver(padded(MIB + 1))
    expect(refused).toMatch(/^HTTP\/1\.1 413 /)
    expect(refused).toContain('"code":"body_too_large"')
    await expectNothingStored(daemon)

    expect(await deliver(padded(MIB))).toMatch(/^HTTP\/1\.1 200 /)
    const [row] = await storedEvents(daemon)
    expect(row).toMatchObject({ event_id: 'evt_signed', disposition: 'applied' })
    expect(row?.body?.equals(padded(MIB))).toBe(true)
  })

  it('is refused by its announcement, before a byte of it came', async () => {
    const daemon = await runDaemon()
    const connection = await openConnection(daemon.url)
    connection.send(head('POST /webhooks/live', { 'content-length': String(MIB + 1) }))
    await connection.until('"code":"body_too_large"')
    expect(connection.received()).toMatch(/^HTTP\/1\.1 413 /)
    await expectNothingStored(daemon)
  })
})

describe('a body that breaks off', () => {
  const begun = (framing: Record<string, string>) =>
    head('POST /webhooks/live', { ...headersOf(BODY), ...framing })
  const announced = begun({ 'content-length': String(BODY.length) })

  it.each([
    ['before it began', announced],
    ['a byte before its end', announced + BODY.slice(0, -1)],
    [
      'between two chunks',
      `${begun({ 'transfer-encoding': 'chunked' })}${BODY.length.toString(16)}\r\n${BODY}\r\n`,
    ],
  ])('%s leaves nothing behind, and the sender may come again', async (_name, bytes) => {
    const daemon = await runDaemon()
    const connection = await openConnection(daemon.url)
    connection.send(bytes)
    connection.destroy()
    await connection.closed
    await ask(daemon, '/healthz')
    await expectNothingStored(daemon)

    expect(await (await send(daemon, BODY)).json()).toMatchObject({ disposition: 'applied' })
    const refused = [{ msg: 'delivery refused', code: 'body_incomplete' }]
    await eventually(() => expect(warnings(daemon)).toMatchObject(refused))
  })
})
