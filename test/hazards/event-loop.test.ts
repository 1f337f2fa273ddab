import { expect, it } from 'vitest'
import { signBody } from '../../src/provider/signature.js'
import { wireEvent } from '../daemon/wire-events.js'
import { API_KEY, CONFIG, configuredFolder, readStore, SECRET, type ServedDaemon, serve } from '../world.js'

/** No request may keep all others waiting for longer. */
const LONGEST_STALL_SECONDS = 0.05
/** The meter looks this often, and counts the time between two looks in. */
const METER_SECONDS = 0.01
/** A machine with other work stalls any process now and then; a bad pattern or a parser does so every time. */
const ROUNDS = 20
/** Three at once, since what is sent again while the first is read must not add up either. */
const AT_ONCE = 3
const MIB = 1024 * 1024
/** About as much as the headers of one request may hold. */
const HEADER_BYTES = 15_000

/** Sends something once; resolves with the status of the answer. */
type Sending = (daemon: ServedDaemon) => Promise<number>

/** One key after another, none twice. */
function manyKeys(length: number): string {
  let members = '"z":0'
  for (let index = 0; members.length < length; index += 1) members += `,"k${index}":${index}`
  return `{${members}}`
}

/** A grant with this text in place of one that it holds. */
function grantWith(what: string, text: string): string {
  const grant = wireEvent('payment.authorized', { id: `evt_${text.length}_${what.length}` })
  return grant.replace(what, () => text)
}

function signed(body: string, headers: Record<string, string> = {}): Sending {
  return async ({ url }) => {
    const timestamp = String(Math.floor(Date.now() / 1000))
    const proof = {
      'X-Webhook-Timestamp': timestamp,
      'X-Webhook-Signature': signBody(SECRET, timestamp, Buffer.from(body)),
    }
    const answer = await fetch(`${url}/webhooks/live`, {
      method: 'POST',
      body,
      headers: { ...proof, ...headers },
    })
    await answer.arrayBuffer()
    return answer.status
  }
}

function asked(path: string, headers: Record<string, string> = {}): Sending {
  return async ({ url }) => {
    const authorized = { Authorization: `Bearer ${API_KEY}`, ...headers }
    const answer = await fetch(url + path, { headers: authorized })
    await answer.arrayBuffer()
    return answer.status
  }
}

/** How long the loop was held up at most since this was last asked. */
async function longestStall(daemon: ServedDaemon): Promise<number> {
  const metricsUrl = daemon.logged().find((line) => 'metricsUrl' in line)?.metricsUrl
  const text = await (await fetch(`${metricsUrl}/metrics`)).text()
  const [, seconds] = /^nodejs_eventloop_lag_max_seconds (\S+)$/m.exec(text) ?? []
  return Number(seconds)
}

const TEXT = 'a@'.repeat(MIB / 4)
const BODIES: readonly (readonly [name: string, body: string])[] = [
  ['blanks', ' '.repeat(MIB)],
  ['opening brackets', '['.repeat(MIB)],
  ['objects within one another', '{"a":'.repeat(MIB / 8) + '}'.repeat(MIB / 8)],
  ['one key again and again', `{${'"a":1,'.repeat(MIB / 8)}"a":1}`],
  ['backslashes', `{"a":"${'\\'.repeat(MIB - 16)}`],
  ['many keys', grantWith('{', `{"more":${manyKeys(MIB / 2)},`)],
  ['many keys of metadata', grantWith('"data":{', `"data":{"metadata":${manyKeys(MIB / 2)},`)],
  ['an email', grantWith('"data":{', `"data":{"customer_email":"${TEXT}",`)],
  ['a reference of blanks', grantWith('"data":{', `"data":{"external_ref":"${' '.repeat(MIB / 2)}x",`)],
  ['a type', grantWith('payment.authorized', 'payment.'.repeat(MIB / 16))],
  ['a time', grantWith('"createdAt":"', `"createdAt":"${'0'.repeat(MIB / 2)}`)],
]

const EVENT = wireEvent('customer.created', { id: 'evt_small' })
const HEADERS: readonly (readonly [name: string, sending: Sending, status: number])[] = [
  ['a signature', signed(EVENT, { 'X-Webhook-Signature': `v1=${'a'.repeat(HEADER_BYTES)}` }), 401],
  ['a timestamp', signed(EVENT, { 'X-Webhook-Timestamp': '1'.repeat(HEADER_BYTES) }), 401],
  ['an event name', signed(EVENT, { 'X-Webhook-Event': 'a.'.repeat(HEADER_BYTES / 2) }), 200],
  ['an encoding', signed(EVENT, { 'Content-Encoding': ' ,'.repeat(HEADER_BYTES / 2) }), 415],
  ['a content type', signed(EVENT, { 'Content-Type': `a/${';'.repeat(HEADER_BYTES)}` }), 200],
  ['a key', asked('/entitlements/cus_1', { Authorization: `Bearer ${'\t'.repeat(HEADER_BYTES)}x y` }), 401],
  [
    'a list of tags',
    asked('/entitlements/cus_1', { 'If-None-Match': 'W/"a",'.repeat(HEADER_BYTES / 6) }),
    200,
  ],
  ['an open tag', asked('/entitlements/cus_1', { 'If-None-Match': `"${' '.repeat(HEADER_BYTES)}` }), 200],
  ['an instant', asked(`/entitlements/cus_1?at=${'2'.repeat(HEADER_BYTES)}`), 400],
  ['a query', asked(`/entitlements/cus_1?${'environment=live&'.repeat(HEADER_BYTES / 20)}`), 400],
  ['a customer', asked(`/entitlements/${'%2e'.repeat(HEADER_BYTES / 3)}`), 400],
  ['slashes', asked('/'.repeat(HEADER_BYTES)), 404],
]

it('nothing that is sent, however large and odd, holds up the thread that answers everybody', async () => {
  const folder = configuredFolder({ ...CONFIG, server: { port: 0, metrics: { port: 0 } } })
  const daemon = await serve(folder)
  const sendings = [...BODIES.map(([name, body]) => [name, signed(body), 200] as const), ...HEADERS]
  for (const [name, sending, status] of sendings) {
    let shortest = Number.POSITIVE_INFINITY
    for (let round = 0; round < ROUNDS && shortest > LONGEST_STALL_SECONDS + METER_SECONDS; round += 1) {
      await longestStall(daemon)
      const answers = await Promise.all(Array.from({ length: AT_ONCE }, () => sending(daemon)))
      shortest = Math.min(shortest, await longestStall(daemon))
      expect({ name, answers }).toEqual({ name, answers: Array(AT_ONCE).fill(status) })
    }
    expect({ name, held: shortest > LONGEST_STALL_SECONDS + METER_SECONDS }).toEqual({ name, held: false })
  }

  const bodies = await readStore(folder, (db) => db.selectFrom('events').select('body').execute())
  expect(new Set(bodies.map(({ body }) => body?.toString()))).toEqual(
    new Set([...BODIES.map(([, body]) => body), EVENT]),
  )
})
