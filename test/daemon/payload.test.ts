import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { metric, warnings } from './observed.js'
import { ask, NOW, type RunningDaemon, send, sharedDaemon } from './running-daemon.js'
import { storedUnder } from './stored.js'
import { PRODUCT, wireEvent } from './wire-events.js'

const DAY_MS = 86_400_000

/** A grant that would be applied, with some fields of its envelope replaced; undefined leaves one out. */
function envelope(changed: Record<string, unknown>): string {
  return JSON.stringify({ ...JSON.parse(wireEvent('payment.authorized')), ...changed })
}

function idOf(body: string): string {
  return JSON.parse(body).id
}

/** A customer for each look at what comes after. */
let asked = 0

const shared = sharedDaemon()

/** Sends it twice, and checks what is answered, kept, logged and counted; then that others are served as ever. */
async function expectQuarantined(
  daemon: RunningDaemon,
  sent: { body: string | Buffer; reason: string; id: string | null; endpoint?: 'live' | 'sandbox' },
): Promise<void> {
  const { reason, id, endpoint = 'live' } = sent
  const body = Buffer.from(sent.body)
  const series = `latchkey_deliveries_total{endpoint="${endpoint}",disposition="quarantined"}`
  const counted = (await metric(daemon, series)) ?? 0
  const first = await send(daemon, body, { endpoint })
  expect(first.status).toBe(200)
  expect(await first.json()).toEqual({ received: true, id, disposition: 'quarantined' })
  const again = await send(daemon, body, { endpoint })
  expect(await again.json()).toEqual({ received: true, id, disposition: 'duplicate' })

  const eventId = id ?? `sha256:${createHash('sha256').update(body).digest('hex')}`
  const rows = await storedUnder(daemon, eventId)
  expect(rows).toMatchObject([
    {
      event_id: eventId,
      environment: endpoint,
      disposition: 'quarantined',
      reason,
      normalized: null,
      deliveries: 2,
    },
  ])
  expect(rows[0]?.body?.equals(body)).toBe(true)
  expect(warnings(daemon).filter((warning) => warning.eventId === eventId)).toMatchObject([{ reason }])
  expect(await metric(daemon, series)).toBe(counted + 1)

  asked += 1
  const customer = `cus_${asked}`
  const next = wireEvent('payment.authorized', { environment: endpoint, customer, payment: `pay_${asked}` })
  const good = await send(daemon, next, { endpoint })
  expect(await good.json()).toMatchObject({ disposition: 'applied' })
  const answer = await ask(daemon, `/entitlements/${customer}/${PRODUCT}?environment=${endpoint}`)
  expect(await answer.json()).toMatchObject({ active: true, status: 'active' })
}

describe('an authentic body that is no event', () => {
  it.each<[name: string, body: string | Buffer, reason: string]>([
    ['nothing', '', 'not_json'],
    ['blanks', ' \r\n\t', 'not_json'],
    ['no JSON', 'event=payment.succeeded', 'not_json'],
    ['half an event', envelope({}).slice(0, -1), 'not_json'],
    ['an event and a half', `${envelope({})}{`, 'not_json'],
    ['an event after a byte order mark', `\ufeff${envelope({})}`, 'not_json'],
    ['an event in UTF-16', Buffer.from(envelope({}), 'utf16le'), 'not_json'],
    ['an event with a byte that is not UTF-8', Buffer.from(envelope({ type: 'é' }), 'latin1'), 'not_utf8'],
    ['a number', '42', 'not_an_object'],
    ['a text', '"payment.succeeded"', 'not_an_object'],
    ['true', 'true', 'not_an_object'],
    ['null', 'null', 'not_an_object'],
    ['an empty array', '[]', 'not_an_object'],
    ['an array of events', `[${envelope({})}]`, 'not_an_object'],
    ['an id twice', envelope({}).replace('{', '{"id":"evt_first",'), 'duplicate_keys'],
    ['a key twice, once escaped', envelope({}).replace('{', '{"\\u0069d":"evt_first",'), 'duplicate_keys'],
    ['a key twice deep within', envelope({ data: 0 }).replace('0}', '[[{"a":1,"a":2}]]}'), 'duplicate_keys'],
    ['arrays 200,000 deep', deep('[', ']'), 'nested_too_deep'],
    ['objects 200,000 deep', deep('{"":', '}', '0'), 'nested_too_deep'],
  ])('is kept under the hash of its bytes: %s', async (_name, body, reason) => {
    await expectQuarantined(shared(), { body, reason, id: null })
  })

  function deep(open: string, close: string, core = ''): string {
    const nested = open.repeat(200_000) + core + close.repeat(200_000)
    return envelope({ more: 0 }).replace(/0}$/, () => `${nested}}`)
  }
})

describe('an event without a usable id', () => {
  it.each<[name: string, id: unknown]>([
    ['none', undefined],
    ['null', null],
    ['an empty one', ''],
    ['a number', 7],
    ['an object', { id: 'evt_within' }],
    ['one with a NUL', 'evt_\u0000'],
    ['one with a line break', 'evt_1\r\nSet-Cookie: a=b'],
    ['one with half a surrogate pair', 'evt_\ud800'],
    ['one of 256 characters', 'e'.repeat(256)],
    ['one of 12 kB', 'e'.repeat(12_288)],
  ])('is kept under the hash of its bytes: %s', async (_name, id) => {
    await expectQuarantined(shared(), { body: envelope({ id }), reason: 'id_invalid', id: null })
  })

  it('may have one of 255 characters', async () => {
    const answer = await send(shared(), envelope({ id: 'e'.repeat(255) }))
    expect(await answer.json()).toMatchObject({ disposition: 'applied' })
  })
})

describe('an event that names what can not be kept', () => {
  const bad = ['cus_\u0000', 'cus_\ud800', 'cus_\r\nX: y', 'c'.repeat(12_288)]
  const fields = ['customer', 'product', 'payment', 'subscription'] as const

  it.each(fields.flatMap((field) => bad.map((id) => [field, id] as const)))(
    'is kept under its own id: %s %j',
    async (field, id) => {
      const body = wireEvent('payment.authorized', { [field]: id })
      await expectQuarantined(shared(), { body, reason: 'reference_id_invalid', id: idOf(body) })
    },
  )
})

describe('the time of an event', () => {
  it.each([
    undefined,
    null,
    '',
    0,
    NOW,
    'yesterday',
    '2026-02-30T00:00:00Z',
    '2026-03-01',
    '2026-03-01T25:00:00Z',
  ])('can not be %j', async (createdAt) => {
    const body = envelope({ createdAt })
    await expectQuarantined(shared(), { body, reason: 'created_at_invalid', id: idOf(body) })
  })

  it('may be a day ahead of ours, and no more', async () => {
    const ahead = (ms: number) => envelope({ createdAt: new Date(NOW + ms).toISOString() })
    const body = ahead(DAY_MS + 1)
    await expectQuarantined(shared(), { body, reason: 'created_at_in_future', id: idOf(body) })
    const answer = await send(shared(), ahead(DAY_MS))
    expect(await answer.json()).toMatchObject({ disposition: 'applied' })
  })
})

describe('an event that says it is of the other environment', () => {
  it.each(['live', 'sandbox'] as const)('is kept, and opens nothing: sent to %s', async (endpoint) => {
    const body = envelope({ livemode: endpoint !== 'live' })
    await expectQuarantined(shared(), { body, reason: 'livemode_mismatch', id: idOf(body), endpoint })
  })
})
