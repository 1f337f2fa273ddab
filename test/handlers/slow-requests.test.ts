import type { IncomingMessage } from 'node:http'
import { expect, it, onTestFinished } from 'vitest'
import { readBody } from '../../src/handlers/body.js'
import { createServer } from '../../src/handlers/server.js'
import { eventually } from '../setup/eventually.js'
import { FREE_PORT, openFront, signed } from './daemon-front.js'
import { head, openConnection } from './raw-connection.js'

const BEGINNINGS = {
  nothing: '',
  'half the headers': 'POST /webhooks/v3 HTTP/1.1\r\nhost: front\r\n',
  'no body': head('POST /webhooks/v3', { ...signed('{}'), 'content-length': '2' }),
  'half the body': `${head('POST /webhooks/v3', { ...signed('{}'), 'content-length': '2' })}{`,
  'half the chunks': `${head('POST /webhooks/v3', { ...signed('{}'), 'transfer-encoding': 'chunked' })}1\r\n{\r\n`,
}

it('a sender that never gets beyond the beginning of its request is cut off, and keeps nobody else waiting', async () => {
  const { url, deliveries } = await openFront()
  const answered = Promise.all(
    Object.entries(BEGINNINGS).map(async ([name, bytes]) => {
      const connection = await openConnection(url)
      if (bytes !== '') connection.send(bytes)
      return [name, await connection.closed] as const
    }),
  )
  expect(
    (await fetch(`${url}/webhooks/v3`, { method: 'POST', headers: signed('{}'), body: '{}' })).status,
  ).toBe(200)
  for (const [name, answer] of await answered) {
    expect(answer, name).toMatch(/^HTTP\/1\.1 408 Request Timeout\r\n/)
    expect(answer, name).toContain('"code":"body_incomplete"')
  }
  expect(deliveries).toHaveLength(1)
})

it('a sender that never stops sending, a byte at a time, is cut off as well', async () => {
  const failures: unknown[] = []
  const handle = (req: IncomingMessage): void => {
    readBody(req, 1024 * 1024).catch((error: unknown) => failures.push(error))
  }
  const timeouts = { headersMs: 100, requestMs: 200, checkMs: 20 }
  const server = await createServer({ handle, timeouts }).listen(FREE_PORT)
  onTestFinished(server.stop)

  const connection = await openConnection(server.url)
  connection.send(head('POST /body', { 'transfer-encoding': 'chunked' }))
  const sending = setInterval(() => connection.send('1\r\na\r\n'), 5)
  onTestFinished(() => clearInterval(sending))
  expect(await connection.closed).toMatch(/^HTTP\/1\.1 408 /)
  await eventually(() => expect(failures).toMatchObject([{ code: 'body_incomplete' }]))
})
