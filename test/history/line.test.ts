import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { exportLine, readImportLine } from '../../src/history/line.js'
import type { Environment, NormalizedEvent } from '../../src/provider/event.js'
import { normalise } from '../../src/provider/normalise.js'
import { buildSampleEvent, SAMPLE_TYPES } from '../../src/provider/sample-event.js'
import { signBody } from '../../src/provider/signature.js'
import { sha256Of } from '../../src/store/stored-form.js'
import { byHand } from '../entitlements/events.js'
import { deliveryLine, endpointNamed, manualLine, SIGNED_AT, TIMESTAMP } from './exported-lines.js'

const BODY = '{"id":"evt_1"}'
/** The next day. */
const NOW = Date.UTC(2026, 2, 2, 12)
const DAY_MS = 86_400_000
const FOUR_DIGIT_YEARS = { min: 0, max: Date.UTC(9999, 11, 31) }

const signedDelivery = fc
  .record({
    secret: fc.constantFrom('live', 'sandbox'),
    body: fc.uint8Array({ maxLength: 300 }),
    event: fc.option(fc.string()),
    seconds: fc.integer({ min: DAY_MS / 1_000, max: 2 ** 31 }),
    later: fc.integer({ min: -DAY_MS, max: DAY_MS }),
  })
  .map(({ secret: endpoint, body: bytes, event, seconds, later }) => {
    const receivedAt = seconds * 1_000 + later
    const body = Buffer.from(bytes)
    const timestamp = String(seconds)
    const signature = signBody(`whsec_${endpoint}`, timestamp, body)
    const environment = endpoint === 'live' ? ('live' as const) : ('sandbox' as const)
    return { endpoint, environment, body, headers: { event, timestamp, signature }, receivedAt }
  })

const byHandDelivery = fc
  .record({
    type: fc.constantFrom('manual.granted' as const, 'manual.blocked' as const),
    environment: fc.constantFrom('live' as const, 'sandbox' as const),
    minute: fc.nat(1_000_000),
    until: fc.option(fc.integer(FOUR_DIGIT_YEARS)),
    receivedAt: fc.integer(FOUR_DIGIT_YEARS),
  })
  .map(({ type, environment, minute, until, receivedAt }) => {
    const body = Buffer.from(JSON.stringify(byHand(type, minute, { until })))
    return { endpoint: 'manual', environment, body, headers: null, receivedAt }
  })

/** What can't be read again, of every documented type. */
const readDelivery = fc
  .record({
    type: fc.constantFrom(...SAMPLE_TYPES.v2, ...SAMPLE_TYPES.v3),
    environment: fc.constantFrom('live' as const, 'sandbox' as const),
    event: fc.option(fc.string()),
    why: fc.constantFrom('expired' as const, 'erased' as const, 'redacted' as const),
    left: fc.uint8Array({ maxLength: 300 }),
    bytes: fc.nat(),
    at: fc.integer(FOUR_DIGIT_YEARS),
    receivedAt: fc.integer({ ...FOUR_DIGIT_YEARS, min: SIGNED_AT }),
  })
  .map(({ type, environment, event, why, left, bytes, at, receivedAt }) => {
    const { body } = buildSampleEvent({ ...SAMPLE, type, environment })
    return {
      endpoint: 'gone',
      environment,
      headers: { event, timestamp: TIMESTAMP, signature: 'v1=00' },
      body: Buffer.from(left),
      receivedAt,
      reading: {
        event: readingOf(body, environment),
        bodySha256: sha256Of(Buffer.from(body)),
        removed: { why, at, bytes },
      },
    }
  })

const SAMPLE = {
  eventId: 'evt_1',
  createdAt: SIGNED_AT,
  customerId: 'cus_1',
  productId: 'pro_1',
  paymentId: 'pay_1',
  subscriptionId: 'sub_1',
  rail: 'card',
} as const

function readingOf(body: string, environment: Environment): NormalizedEvent {
  const read = normalise(Buffer.from(body), { environment, receivedAt: SIGNED_AT })
  if (!read.ok) throw new Error(`a sample that can't be read: ${read.reason}`)
  return read.event
}

const readingLine = (told: Readonly<Record<string, unknown>> = {}): string => {
  const event = readingOf(
    buildSampleEvent({ ...SAMPLE, type: 'payment.refunded', environment: 'live' }).body,
    'live',
  )
  const delivery = {
    environment: 'live' as const,
    endpoint: 'live',
    headers: { event: null, timestamp: TIMESTAMP, signature: 'v1=00' },
    body: Buffer.alloc(0),
    receivedAt: SIGNED_AT,
    reading: {
      event,
      bodySha256: sha256Of(Buffer.from(BODY)),
      removed: { why: 'erased' as const, at: SIGNED_AT, bytes: 7 },
    },
  }
  const { event: read, ...line } = JSON.parse(exportLine(delivery))
  return JSON.stringify({ ...line, event: { ...read, ...(told.event as object) }, ...without(told, 'event') })
}

const without = (told: Readonly<Record<string, unknown>>, name: string) =>
  Object.fromEntries(Object.entries(told).filter(([key]) => key !== name))

describe('a line of an export', () => {
  it('is read as what it was written of', () => {
    fc.assert(
      fc.property(fc.oneof(signedDelivery, byHandDelivery), (delivery) => {
        const line = exportLine(delivery)
        expect(readImportLine(line, endpointNamed, FOUR_DIGIT_YEARS.max)).toEqual({
          outcome: 'read',
          delivery,
        })
      }),
    )
  })

  it('of what was read, and can not be read again, is taken as that', () => {
    fc.assert(
      fc.property(readDelivery, (delivery) => {
        const read = readImportLine(exportLine(delivery), endpointNamed, FOUR_DIGIT_YEARS.max)
        expect(read).toEqual({ outcome: 'read', delivery })
      }),
    )
  })

  it.each([
    ['no environment', { environment: undefined }],
    ['the endpoint of what is done by hand', { endpoint: 'manual' }],
    ['no event', { event: { subject: undefined } }],
    ['what was done by hand', { event: { subject: 'manual', type: 'manual.granted' } }],
    ['a field that no event has', { event: { note: 1 } }],
    ['a type of another subject', { event: { type: 'subscription.created' } }],
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
    expect(readImportLine(readingLine(told), endpointNamed, NOW)).toMatchObject({
      outcome: 'refused',
      reason: 'line_invalid',
    })
  })

  it.each([-DAY_MS, DAY_MS])('was received a day from its signed time at most: %i ms', (later) => {
    const lineOf = (receivedAt: number) =>
      deliveryLine(BODY, { receivedAt: new Date(receivedAt).toISOString() })
    const read = (receivedAt: number) => readImportLine(lineOf(receivedAt), endpointNamed, NOW + 9 * DAY_MS)
    expect(read(SIGNED_AT + later)).toMatchObject({ outcome: 'read' })
    expect(read(SIGNED_AT + later + Math.sign(later))).toEqual({
      outcome: 'refused',
      reason: 'received_at_unlikely',
      detail: 'it is said to have been received over a day from its signed time',
    })
  })

  it('may name its headers as the wire does', () => {
    const headers = {
      'X-Webhook-Event': 'payment.succeeded',
      'X-Webhook-Timestamp': TIMESTAMP,
      'X-Webhook-Signature': signBody('whsec_live', TIMESTAMP, Buffer.from(BODY)),
    }
    expect(readImportLine(deliveryLine(BODY, { headers }), endpointNamed, NOW)).toMatchObject({
      outcome: 'read',
      delivery: { headers: { event: 'payment.succeeded', timestamp: TIMESTAMP } },
    })
  })

  it('may hold headers and fields that nobody knows, whatever they are called', () => {
    const line = JSON.parse(deliveryLine(BODY))
    const headers = { ...line.headers, constructor: 'x', toString: 'y' }
    const text = JSON.stringify({ ...line, headers, note: 1 }).replace('"toString"', '"__proto__"')
    expect(readImportLine(text, endpointNamed, NOW)).toMatchObject({ outcome: 'read' })
  })

  const known = JSON.parse(deliveryLine(BODY)).headers as Record<string, string>
  it.each([
    ['no JSON', '{"endpoint":', 'line_invalid', 'is not JSON'],
    ['no object', '[]', 'line_invalid', ''],
    ['no endpoint', deliveryLine(BODY, { endpoint: undefined }), 'line_invalid', 'endpoint:'],
    ['no headers', deliveryLine(BODY, { headers: undefined }), 'line_invalid', 'headers:'],
    ['no body', deliveryLine(BODY, { bodyBase64: undefined }), 'line_invalid', 'bodyBase64:'],
    ['no time', deliveryLine(BODY, { receivedAt: undefined }), 'line_invalid', 'receivedAt:'],
    [
      'a day that never was',
      deliveryLine(BODY, { receivedAt: '2026-02-30T12:00:00Z' }),
      'line_invalid',
      'receivedAt',
    ],
    [
      'a body that is not base64',
      deliveryLine(BODY, { bodyBase64: 'e30=!' }),
      'line_invalid',
      'is not base64',
    ],
    [
      'a body without its padding',
      deliveryLine(BODY, { bodyBase64: 'e30' }),
      'line_invalid',
      'is not base64',
    ],
    ['a kind of its own', deliveryLine(BODY, { kind: 'other' }), 'line_invalid', 'kind'],
    ['an unknown endpoint', deliveryLine(BODY, { endpoint: 'gone' }), 'endpoint_not_found', ''],
    [
      'no signature',
      deliveryLine(BODY, { headers: without(known, 'x-webhook-signature') }),
      'signature_missing',
      '',
    ],
    [
      'no timestamp',
      deliveryLine(BODY, { headers: without(known, 'x-webhook-timestamp') }),
      'timestamp_invalid',
      '',
    ],
    [
      'the same header twice',
      deliveryLine(BODY, { headers: { ...known, 'X-Webhook-Signature': 'v1=00' } }),
      'signature_invalid',
      '',
    ],
    ['the signature of another body', deliveryLine(BODY, { bodyBase64: 'e30=' }), 'signature_invalid', ''],
    ["another endpoint's signature", deliveryLine(BODY, { endpoint: 'sandbox' }), 'signature_invalid', ''],
    ['a secret that had ended', deliveryLine(BODY, {}, 'whsec_ended'), 'secret_expired', ''],
  ])('is refused with %s', (_, line, reason, detail) => {
    const read = readImportLine(line, endpointNamed, NOW)
    expect(read).toMatchObject({ outcome: 'refused', reason })
    expect('detail' in read && read.detail).toContain(detail)
  })

  it.each([
    ['a delivery', (receivedAt: string) => deliveryLine(BODY, { receivedAt })],
    [
      'what was done by hand',
      (receivedAt: string) => manualLine(byHand('manual.granted', 0), { receivedAt }),
    ],
  ])('of %s was received a day from now at most, since nobody signed when', (_, lineReceived) => {
    const read = (receivedAt: string) => readImportLine(lineReceived(receivedAt), endpointNamed, SIGNED_AT)
    expect(read('2026-03-02T12:00:00.000Z')).toMatchObject({ outcome: 'read' })
    expect(read('2026-03-02T12:00:00.001Z')).toEqual({
      outcome: 'refused',
      reason: 'received_at_in_future',
      detail: 'it is said to have been received more than a day from now',
    })
  })

  const event = byHand('manual.granted', 0)

  it.each([
    ['no environment', manualLine(event, { environment: undefined })],
    ['an environment that there is not', manualLine(event, { environment: 'test' })],
    ['a body that is no JSON', manualLine(event, { bodyBase64: 'e30' })],
    ["a body of the provider's", manualLine(event, { bodyBase64: Buffer.from(BODY).toString('base64') })],
    ["an id of the provider's", manualLine({ ...event, id: 'evt_1' })],
    ['a customer that can not be', manualLine({ ...event, customerId: '' })],
    ['a time that is none', manualLine({ ...event, createdAt: SIGNED_AT + 0.5 })],
  ])('of what was done by hand is refused with %s', (_, line) => {
    expect(readImportLine(line, endpointNamed, NOW)).toMatchObject({
      outcome: 'refused',
      reason: 'line_invalid',
    })
  })
})
