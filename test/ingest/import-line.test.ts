import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { exportLine } from '../../src/ingest/export-line.js'
import { readImportLine } from '../../src/ingest/import-line.js'
import { signBody } from '../../src/provider/signature.js'
import { byHand } from '../entitlements/manual-events.js'
import { deliveryLine, endpointNamed, manualLine, SIGNED_AT, TIMESTAMP } from './exported-lines.js'

const BODY = '{"id":"evt_1"}'
/** The next day. */
const NOW = Date.UTC(2026, 2, 2, 12)
const FOUR_DIGIT_YEARS = { min: 0, max: Date.UTC(9999, 11, 31) }

const signedDelivery = fc
  .record({
    secret: fc.constantFrom('live', 'sandbox'),
    body: fc.uint8Array({ maxLength: 300 }),
    event: fc.option(fc.string()),
    seconds: fc.nat(2 ** 31),
    receivedAt: fc.integer(FOUR_DIGIT_YEARS),
  })
  .map(({ secret: endpoint, body: bytes, event, seconds, receivedAt }) => {
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

describe('a line of an export', () => {
  it('is read as what it was written of', () => {
    fc.assert(
      fc.property(fc.oneof(signedDelivery, byHandDelivery), (delivery) => {
        const line = exportLine({ ...delivery, eventId: 'evt_any' })
        expect(readImportLine(line, endpointNamed, FOUR_DIGIT_YEARS.max)).toEqual({
          outcome: 'read',
          delivery,
        })
      }),
    )
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
  const without = (name: string) => Object.fromEntries(Object.entries(known).filter(([key]) => key !== name))

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
      deliveryLine(BODY, { headers: without('x-webhook-signature') }),
      'signature_missing',
      '',
    ],
    [
      'no timestamp',
      deliveryLine(BODY, { headers: without('x-webhook-timestamp') }),
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
    const read = (receivedAt: string) => readImportLine(lineReceived(receivedAt), endpointNamed, NOW)
    expect(read('2026-03-03T12:00:00.000Z')).toMatchObject({ outcome: 'read' })
    expect(read('2026-03-03T12:00:00.001Z')).toEqual({
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
