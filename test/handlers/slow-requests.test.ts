import { expect, it } from 'vitest'
import { openFront, signed } from './daemon-front.js'
import { head, openConnection } from './raw-connection.js'

const BEGINNINGS = {
  nothing: '',
  'half the headers': 'POST /webhooks/v3 HTTP/1.1\r\nhost: front\r\n',
  'half the body': `${head('POST /webhooks/v3', { ...signed('{}'), 'content-length': '2' })}{`,
  'half the chunks': `${head('POST /webhooks/v3', { 'transfer-encoding': 'chunked' })}1\r\n{\r\n`,
}

it('a sender that never gets beyond the beginning of its request is cut off', async () => {
  const { url, deliveries } = await openFront()
  const answers = await Promise.all(
    Object.entries(BEGINNINGS).map(async ([name, bytes]) => {
      const connection = await openConnection(url)
      if (bytes !== '') connection.send(bytes)
      return [name, await connection.closed] as const
    }),
  )
  for (const [name, answer] of answers) {
    expect(answer, name).toMatch(/^HTTP\/1\.1 408 Request Timeout\r\n/)
    expect(answer, name).toContain('"code":"body_incomplete"')
  }
  expect(deliveries).toEqual([])
})
