import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { exportLine, readImportLine } from '../../src/history/line.js'
import { NO_DETAILS } from '../../src/provider/customer.js'
import { type Environment, type NormalizedEvent, parseManualEvent } from '../../src/provider/event.js'
import { WIRE_TYPES } from '../../src/provider/event-types.js'
import { normalise } from '../../src/provider/normalise.js'
import { buildSampleEvent } from '../../src/provider/sample-event.js'
import { signBody } from '../../src/provider/signature.js'
import { sha256Of } from '../../src/store/stored-form.js'
import { byHand } from '../entitlements/events.js'
import { deliveryLine, endpointNamed, manualLine, SIGNED_AT, TIMESTAMP } from './exported-lines.js'

const BODY = '{"id":"evt_1"}'
/** The next day. */
const NOW = Date.UTC(2026, 2, 2, 12)
const DAY_MS = 86_400_000
const FOUR_DIGIT_YEARS = { min: 0, max: Date.UTC(9999, 11, 31) }

const environments = fc.constantFrom('live', 'sandbox')

const signedDelivery = fc
  .record({
    endpoint: environments,
    body: fc.uint8Array({ maxLength: 300 }),
    event: fc.option(fc.string()),
    seconds: fc.integer({ min: DAY_MS / 1_000, max: 2 ** 31 }),
    later: fc.integer({ min: -DAY_MS, max: DAY_MS }),
  })
  .map(({ endpoint, body: bytes, event, seconds, later }) => {
    const body = Buffer.from(bytes)
    const timestamp = String(seconds)
    const signature = signBody(`whsec_${endpoint}`, timestamp, body)
    const headers = { event, timestamp, signature }
    const receivedAt = seconds * 1_000 + later
    return { endpoint, environment: endpoint, body, headers, receivedAt, aheadAtMostMs: DAY_MS }
  })

const byHandDelivery = fc
  .record({
    type: fc.constantFrom('manual.granted', 'manual.blocked'),
    environment: environments,
    minute: fc.nat(1_000_000),
    until: fc.option(fc.integer(FOUR_DIGIT_YEARS)),
    receivedAt: fc.integer(FOUR_DIGIT_YEARS),
  })
  .map(({ type, environment, minute, until, receivedAt }) => {
    const body = Buffer.from(JSON.stringify(byHand(type, minute, { until })))
    return { endpoint: 'manual', environment, body, headers: null, receivedAt }
  })

/** What Latchkey reported, whole or with its bytes removed. */
const reportedDelivery = fc
  .record({
    environment: environments,
    why: fc.constantFrom(null, 'erased', 'expired'),
    at: fc.nat(1_000_000),
  })
  .map(({ environment, why, at }) => {
    const { body, event } = reportOf(environment, at)
    const delivery = {
      endpoint: 'backfill',
      environment,
      body,
      headers: 'reported',
      receivedAt: SIGNED_AT,
    } as const
    if (why === null) return delivery
    const removed = { why, at: SIGNED_AT, bytes: body.byteLength } as const
    return { ...delivery, body: Buffer.alloc(0), reading: { event, bodySha256: sha256Of(body), removed } }
  })

function reportOf(environment: Environment, at = 0, told: object = {}) {
  const id = `rec_${sha256Of(Buffer.from(String(at))).slice(0, 24)}`
  const json = { id, type: 'payment.reported', createdAt: new Date(at).toISOString(), data: { id: 'pay_1' } }
  const body = Buffer.from(JSON.stringify({ ...json, ...told }))
  const read = normalise(body, { environment, receivedAt: SIGNED_AT, isReport: true })
  return { body, event: read.ok ? read.event : null } as { body: Buffer; event: NormalizedEvent }
}

const SAMPLE = {
  eventId: 'evt_1',
  createdAt: SIGNED_AT,
  customerId: 'cus_1',
  productId: 'pro_1',
  paymentId: 'pay_1',
  subscriptionId: 'sub_1',
  rail: 'card',
} as const

/** A sample as it is sent, and what it is read as. */
function sampleOf(type: string, environment: Environment): { body: Buffer; event: NormalizedEvent } {
  const body = Buffer.from(buildSampleEvent({ ...SAMPLE, type, environment }).body)
  const read = normalise(body, { environment, receivedAt: SIGNED_AT })
  if (!read.ok) throw new Error(`a sample that can't be read: ${read.reason}`)
  return { body, event: read.event }
}

const UNSIGNED = { timestamp: TIMESTAMP, signature: 'v1=00' }

/** What can't be read again, of every documented type. */
const readDelivery = fc
  .record({
    type: fc.constantFrom(...WIRE_TYPES.v2, ...WIRE_TYPES.v3),
    environment: environments,
    event: fc.option(fc.string()),
    why: fc.constantFrom('expired', 'erased', 'redacted'),
    left: fc.uint8Array({ maxLength: 300 }),
    bytes: fc.nat(),
    at: fc.integer(FOUR_DIGIT_YEARS),
    receivedAt: fc.integer({ ...FOUR_DIGIT_YEARS, min: SIGNED_AT }),
  })
  .map(({ type, environment, event, why, left, bytes, at, receivedAt }) => {
    const sample = sampleOf(type, environment)
    const reading = { event: sample.event, bodySha256: sha256Of(sample.body), removed: { why, at, bytes } }
    const headers = { event, ...UNSIGNED }
    return { endpoint: 'gone', environment, headers, body: Buffer.from(left), receivedAt, reading }
  })

/** What a delivery was read as; `told` takes the place of what would be right, in its event as well. */
function readingLine({ event: toldEvent = {}, ...told }: Readonly<Record<string, unknown>> = {}): string {
  const { body, event } = sampleOf('payment.refunded', 'live')
  const removed = { why: 'erased', at: SIGNED_AT, bytes: 7 } as const
  const line = exportLine({
    environment: 'live',
    endpoint: 'live',
    headers: { event: null, ...UNSIGNED },
    body: Buffer.alloc(0),
    receivedAt: SIGNED_AT,
    reading: { event, bodySha256: sha256Of(body), removed },
  })
  return JSON.stringify({ ...JSON.parse(line), ...told, event: { ...event, ...(toldEvent as object) } })
}

const refused = (reason: string, detail?: string) => ({
  outcome: 'refused',
  reason,
  ...(detail !== undefined && { detail: expect.stringContaining(detail) }),
})

describe('a line of an export', () => {
  it('is read as what it was written of: also by hand, reported, and where it cannot be read again', () => {
    fc.assert(
      fc.property(fc.oneof(signedDelivery, byHandDelivery, reportedDelivery, readDelivery), (delivery) => {
        const read = readImportLine(exportLine(delivery), endpointNamed, FOUR_DIGIT_YEARS.max)
        expect(read).toEqual({ outcome: 'read', delivery })
      }),
      { numRuns: 300 },
    )
  })

  it('may name its headers as the wire does, and hold headers and fields that nobody knows', () => {
    const signature = signBody('whsec_live', TIMESTAMP, Buffer.from(BODY))
    const headers = {
      'X-Webhook-Event': 'payment.succeeded',
      'X-Webhook-Timestamp': TIMESTAMP,
      'X-Webhook-Signature': signature,
      constructor: 'x',
      toString: 'y',
    }
    const line = deliveryLine(BODY, { headers, note: 1 }).replace('"toString"', '"__proto__"')
    expect(readImportLine(line, endpointNamed, NOW)).toMatchObject({
      outcome: 'read',
      delivery: { headers: { event: 'payment.succeeded', timestamp: TIMESTAMP } },
    })
  })

  const { headers: known } = JSON.parse(deliveryLine(BODY)) as { headers: Record<string, string> }
  const without = (name: string) => Object.fromEntries(Object.entries(known).filter(([key]) => key !== name))
  const twice = { ...known, 'X-Webhook-Signature': 'v1=00' }

  it.each<[string, string, string, string?]>([
    ['no JSON', '{"endpoint":', 'line_invalid', 'is not JSON'],
    ['no object', '[]', 'line_invalid'],
    ...['endpoint', 'headers', 'bodyBase64', 'receivedAt'].map((name): [string, string, string, string] => [
      `no ${name}`,
      deliveryLine(BODY, { [name]: undefined }),
      'line_invalid',
      `${name} is missing`,
    ]),
    [
      'a day that never was',
      deliveryLine(BODY, { receivedAt: '2026-02-30T12:00:00Z' }),
      'line_invalid',
      'time',
    ],
    ['what is no base64', deliveryLine(BODY, { bodyBase64: 'e30=!' }), 'line_invalid', 'is not base64'],
    ['no padding', deliveryLine(BODY, { bodyBase64: 'e30' }), 'line_invalid', 'is not base64'],
    ['a kind of its own', deliveryLine(BODY, { kind: 'other' }), 'line_invalid', 'kind'],
    ['an unknown endpoint', deliveryLine(BODY, { endpoint: 'gone' }), 'endpoint_not_found'],
    ['no signature', deliveryLine(BODY, { headers: without('x-webhook-signature') }), 'signature_missing'],
    ['no timestamp', deliveryLine(BODY, { headers: without('x-webhook-timestamp') }), 'timestamp_invalid'],
    ['the same header twice', deliveryLine(BODY, { headers: twice }), 'signature_invalid'],
    ['the signature of another body', deliveryLine(BODY, { bodyBase64: 'e30=' }), 'signature_invalid'],
    ["another endpoint's signature", deliveryLine(BODY, { endpoint: 'sandbox' }), 'signature_invalid'],
    ['a secret that had ended', deliveryLine(BODY, {}, 'whsec_ended'), 'secret_expired'],
  ])('is refused with %s', (_, line, reason, detail) => {
    expect(readImportLine(line, endpointNamed, NOW)).toMatchObject(refused(reason, detail))
  })

  it.each([
    ['no environment', { environment: undefined }],
    ['the endpoint of what is done by hand', { endpoint: 'manual' }],
    ['no event', { event: { subject: undefined } }],
    ['what was done by hand', { event: { subject: 'manual', type: 'manual.granted' } }],
    ['metadata that is not text', { event: { metadata: { plan: 1 } } }],
    ['a detail that is not text', { event: { customer: { email: 1 } } }],
    ['a type of another subject', { event: { type: 'subscription.created' } }],
    ['the type of a report, which no delivery has', { event: { type: 'payment.reported' } }],
    ['an id of what is done by hand', { event: { id: 'man_1' } }],
    ['an id that can be none', { event: { id: '' } }],
    ['a time that is none', { event: { createdAt: 0.5 } }],
    ['a time over a day after its receipt', { event: { createdAt: SIGNED_AT + DAY_MS + 1 } }],
    ['no word of what came', { bodyRemoved: undefined }],
    [
      'a hash that is none',
      { bodyRemoved: { why: 'erased', at: '2026-03-01T12:00:00Z', bytes: 7, sha256: 'x' } },
    ],
  ])('of what was read is refused with %s', (_, told) => {
    expect(readImportLine(readingLine(), endpointNamed, NOW)).toMatchObject({ outcome: 'read' })
    expect(readImportLine(readingLine(told), endpointNamed, NOW)).toMatchObject(refused('line_invalid'))
  })

  it.each(['live', 'sandbox'] as const)(
    'of what was read at %s may be as far ahead as its endpoint accepts',
    (name) => {
      const aheadAtMostMs = 300 * DAY_MS
      const named = (one: string) => {
        const endpoint = endpointNamed(one)
        return endpoint?.environment === 'sandbox' ? { ...endpoint, aheadAtMostMs } : endpoint
      }
      const line = readingLine({
        event: { createdAt: SIGNED_AT + aheadAtMostMs },
        environment: name,
        endpoint: name,
      })
      const outcome = name === 'sandbox' ? 'read' : 'refused'
      expect(readImportLine(line, named, NOW)).toMatchObject({ outcome })
    },
  )

  it('of an older or a newer version is read with null in what it lacks, and without what only that knows', () => {
    const { event: known } = sampleOf('payment.refunded', 'live')
    const email = 'a@example.com'
    const told = { railProof: undefined, apiVersion: undefined, customer: { email, pagerId: '7' }, note: 1 }
    const named = readingLine({ event: { ...told, metadata: { note: 'x' } } }).replace(
      '{"note"',
      '{"__proto__"',
    )
    const customer = { ...NO_DETAILS, email }
    const read = readImportLine(named, endpointNamed, NOW)
    expect(read).toMatchObject({ outcome: 'read' })
    const text = JSON.stringify('delivery' in read && read.delivery.reading?.event)
    const metadata = JSON.parse('{ "__proto__": "x" }')
    const expected = { ...known, railProof: null, apiVersion: null, customer, metadata }
    expect(JSON.parse(text)).toStrictEqual(JSON.parse(JSON.stringify(expected)))

    const { until: _, reason: __, ...act } = byHand('manual.granted', 0)
    const body = Buffer.from(JSON.stringify({ ...act, customer: {}, note: 1 }))
    expect(parseManualEvent(body)).toStrictEqual({ ...act, customer: NO_DETAILS, until: null, reason: null })
  })

  const event = byHand('manual.granted', 0)
  it.each([
    ['no environment', manualLine(event, { environment: undefined })],
    ['an environment that there is not', manualLine(event, { environment: 'test' })],
    ['a body that is no JSON', manualLine(event, { bodyBase64: 'e30' })],
    ["a body of the provider's", manualLine(event, { bodyBase64: Buffer.from(BODY).toString('base64') })],
    ["an id of the provider's", manualLine({ ...event, id: 'evt_1' })],
    ['a customer that cannot be', manualLine({ ...event, customerId: '' })],
    ['a time that is none', manualLine({ ...event, createdAt: SIGNED_AT + 0.5 })],
  ])('of what was done by hand is refused with %s', (_, line) => {
    expect(readImportLine(line, endpointNamed, NOW)).toMatchObject(refused('line_invalid'))
  })

  it.each([
    ['an id of a webhook', { id: 'evt_1' }],
    ['an id of a change by hand', { id: 'man_1' }],
    ['no time', { createdAt: null }],
    ['another environment', { livemode: false }],
  ])('of a report is refused with %s, whether its bytes are there or not', (_, told) => {
    const { body } = reportOf('live', 0, told)
    const delivery = { endpoint: 'backfill', environment: 'live', headers: 'reported' } as const
    const line = exportLine({ ...delivery, body, receivedAt: SIGNED_AT })
    expect(readImportLine(line, endpointNamed, NOW)).toMatchObject(
      refused('line_invalid', 'a reported event'),
    )
  })

  it('of a report is no line of a webhook, and the other way round', () => {
    const { event } = reportOf('live')
    const read = (told: Readonly<Record<string, unknown>>) =>
      readImportLine(readingLine(told), endpointNamed, NOW)
    expect(read({ event: { id: event.id } })).toMatchObject(refused('line_invalid'))
    expect(read({ headers: 'reported' })).toMatchObject(refused('line_invalid'))
    expect(read({ headers: 'reported', event: { id: event.id } })).toMatchObject({
      delivery: { endpoint: 'backfill', headers: 'reported' },
    })
    expect(readImportLine(deliveryLine(BODY, { headers: 'reported' }), endpointNamed, NOW)).toMatchObject(
      refused('line_invalid', 'headers'),
    )
  })

  it.each([-DAY_MS, DAY_MS])('was received a day from its signed time at most: %i ms', (later) => {
    const read = (receivedAt: number) => {
      const line = deliveryLine(BODY, { receivedAt: new Date(receivedAt).toISOString() })
      return readImportLine(line, endpointNamed, NOW + 9 * DAY_MS)
    }
    expect(read(SIGNED_AT + later)).toMatchObject({ outcome: 'read' })
    const detail = 'its time of receipt is over a day from its signed time'
    const unlikely = refused('received_at_unlikely', detail)
    expect(read(SIGNED_AT + later + Math.sign(later))).toEqual(unlikely)
  })

  it.each([
    ['a delivery', (receivedAt: string) => deliveryLine(BODY, { receivedAt })],
    ['what was done by hand', (receivedAt: string) => manualLine(event, { receivedAt })],
  ])('of %s was received a day from now at most, since nobody signed when', (_, lineReceived) => {
    const read = (receivedAt: string) => readImportLine(lineReceived(receivedAt), endpointNamed, SIGNED_AT)
    expect(read('2026-03-02T12:00:00.000Z')).toMatchObject({ outcome: 'read' })
    const detail = 'its time of receipt is more than a day in the future'
    expect(read('2026-03-02T12:00:00.001Z')).toEqual(refused('received_at_in_future', detail))
  })
})
