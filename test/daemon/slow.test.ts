import { expect, it } from 'vitest'
import { head, openConnection } from '../handlers/raw-connection.js'
import { BODY, headersOf } from './deliveries.js'
import { type RunningDaemon, runDaemon, send } from './running-daemon.js'
import { storedEvents } from './stored.js'

const HEADERS = headersOf(BODY)
const SIGNED_HEAD = head('POST /webhooks/live', { ...HEADERS, 'content-length': String(BODY.length) })
const CHUNKED_HEAD = head('POST /webhooks/live', { ...HEADERS, 'transfer-encoding': 'chunked' })

const STALLS = [
  ['before it says anything', ''],
  ['within its headers', SIGNED_HEAD.slice(0, -4)],
  ['after its headers', SIGNED_HEAD],
  ['a byte before the end of its body', SIGNED_HEAD + BODY.slice(0, -1)],
  ['between two chunks', `${CHUNKED_HEAD}1\r\n{\r\n`],
] as const

async function stall(daemon: RunningDaemon, bytes: string): Promise<string> {
  const connection = await openConnection(daemon.url)
  if (bytes !== '') connection.send(bytes)
  return connection.closed
}

it('a sender that stalls is cut off, stores nothing, and keeps nobody else waiting', async () => {
  const daemon = await runDaemon()
  const stalled = STALLS.map(async ([where, bytes]) => [where, await stall(daemon, bytes)] as const)
  expect((await send(daemon, '{"id":"evt_other"}')).status).toBe(200)

  for (const [where, answer] of await Promise.all(stalled)) {
    expect(answer, where).toMatch(/^HTTP\/1\.1 408 /)
    expect(answer, where).toContain('"code":"body_incomplete"')
  }
  expect(await storedEvents(daemon)).toMatchObject([{ event_id: 'evt_other' }])
})
