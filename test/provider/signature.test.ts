import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type DistinctHeaders,
  type SignedDelivery,
  signBody,
  verifySignature,
  verifySignatureAsOf,
} from '../../src/provider/signature.js'

const NOW = Date.parse('2026-03-01T12:00:00.900Z')
const SECONDS = Math.floor(NOW / 1000)
const TIMESTAMP = String(SECONDS)
const BODY = Buffer.from('{"id":"evt_1"}')
const SECRET = 'whsec_current'
const ENDPOINT = { secrets: [{ secret: SECRET, notAfter: null }], toleranceSeconds: 300 }
const SIGNATURE = signBody(SECRET, TIMESTAMP, BODY)
const HEX = SIGNATURE.slice(3)

type Values = string | readonly string[]

function headers(signature: Values, timestamp: Values = TIMESTAMP): DistinctHeaders {
  return { 'x-webhook-signature': [signature].flat(), 'x-webhook-timestamp': [timestamp].flat() }
}

function signedBy(secret: string, timestamp = TIMESTAMP, body: Uint8Array = BODY): DistinctHeaders {
  return headers(signBody(secret, timestamp, body), timestamp)
}

function check(over: Partial<SignedDelivery> = {}) {
  return verifySignature({ body: BODY, headers: headers(SIGNATURE), endpoint: ENDPOINT, now: NOW, ...over })
}

const refusal = (code: string, skewSeconds: number | null = null, expiredSecret = false) => ({
  ok: false,
  code,
  skewSeconds,
  expiredSecret,
})

it('signs with the hex HMAC-SHA256 of timestamp, dot and body, as a value computed elsewhere has it', () => {
  expect(signBody('whsec_test', '1700000000', Buffer.from('{}'))).toBe(
    'v1=35495024f4ef3f94e5a93e22221544c4b75e9a42300cd965ab81cb85cd994e91',
  )
})

describe('a signature', () => {
  it('is accepted over the exact bytes, in whichever letter case', () => {
    expect(check()).toEqual({ ok: true, timestamp: TIMESTAMP, signature: SIGNATURE })
    expect(check({ headers: headers(`v1=${HEX.toUpperCase()}`) }).ok).toBe(true)
  })

  it.each<[string, Values, string]>([
    ['absent', [], 'signature_missing'],
    ['empty', '', 'signature_missing'],
    ['sent twice', [SIGNATURE, SIGNATURE], 'signature_invalid'],
    ['sent twice, once empty', ['', SIGNATURE], 'signature_invalid'],
    ['joined by an intermediary', `${SIGNATURE}, ${SIGNATURE}`, 'signature_invalid'],
    ['of an unknown scheme', `v0=${HEX}`, 'signature_invalid'],
    ['behind something else', `x${SIGNATURE}`, 'signature_invalid'],
    ['without a scheme', HEX, 'signature_invalid'],
    ['of odd length', `v1=${HEX.slice(1)}`, 'signature_invalid'],
    ['truncated', `v1=${HEX.slice(2)}`, 'signature_invalid'],
    ['too long', `v1=${HEX}00`, 'signature_invalid'],
    ['followed by what is no hex', `v1=${HEX.slice(2)}zz`, 'signature_invalid'],
    ['followed by a line break', `${SIGNATURE}\n`, 'signature_invalid'],
    ['only a scheme', 'v1=', 'signature_invalid'],
  ])('is refused when it is %s', (_, signature, code) => {
    expect(check({ headers: headers(signature) })).toEqual(refusal(code))
  })

  it.each([
    ['one byte changed', Buffer.from('{"id":"evt_2"}')],
    ['the JSON written again', Buffer.from('{ "id": "evt_1" }')],
    ['a byte order mark put ahead', Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), BODY])],
    ['a byte missing', BODY.subarray(1)],
    ['nothing left', Buffer.alloc(0)],
  ])('is invalid for a body with %s', (_, body) => {
    expect(check({ body })).toEqual(refusal('signature_invalid', 0))
  })

  it('covers bytes that are no UTF-8', () => {
    const body = Buffer.from([0xff, 0xfe, 0x00, 0x80])
    const signed = signedBy(SECRET, TIMESTAMP, body)
    expect(check({ body, headers: signed }).ok).toBe(true)
    expect(check({ body: Buffer.from(body.toString()), headers: signed }).ok).toBe(false)
  })

  it('does not let digits move from the body into the timestamp', () => {
    const [short, moved] = [TIMESTAMP.slice(0, 9), TIMESTAMP.slice(9)]
    const signature = signBody(SECRET, short, Buffer.from(`${moved}.{"id":"evt_1"}`))
    const body = Buffer.from('1.{"id":"evt_1"}')
    expect(check({ body, headers: headers(signature) })).toMatchObject({ code: 'signature_invalid' })
  })
})

describe('a timestamp', () => {
  it.each<[string, Values]>([
    ['empty', ''],
    ['no number', 'abc'],
    ['in exponent form', '1e9'],
    ['followed by letters', '12abc'],
    ['signed', `+${TIMESTAMP}`],
    ['negative', `-${TIMESTAMP}`],
    ['a fraction', `${TIMESTAMP}.0`],
    ['in milliseconds', String(NOW)],
    ['padded', ` ${TIMESTAMP}`],
    ['in other digits', '١٧٧٢٣٦٦٤٠٠'],
    ['sent twice', [TIMESTAMP, TIMESTAMP]],
    ['not sent', []],
  ])('is invalid when it is %s, however well signed', (_, timestamp) => {
    const signature = signBody(SECRET, [timestamp].flat()[0] ?? '', BODY)
    expect(check({ headers: headers(signature, timestamp) })).toEqual(refusal('timestamp_invalid'))
  })

  it.each([301, -301, -86_400 * 365])('is out of tolerance %i s off, which is told with its sign', (skew) => {
    const sent = signedBy(SECRET, String(SECONDS + skew))
    expect(check({ headers: sent })).toEqual(refusal('timestamp_out_of_tolerance', skew))
  })

  it('is measured against the tolerance of the endpoint', () => {
    const strict = { ...ENDPOINT, toleranceSeconds: 5 }
    const codeAt = (skew: number) =>
      check({ headers: signedBy(SECRET, String(SECONDS + skew)), endpoint: strict })
    expect(codeAt(-5)).toMatchObject({ ok: true })
    expect(codeAt(-6)).toMatchObject({ code: 'timestamp_out_of_tolerance' })
  })

  it('tells how far off it is even when no secret signed it', () => {
    const sent = headers(SIGNATURE, String(SECONDS + 900))
    expect(check({ headers: sent })).toEqual(refusal('signature_invalid', 900))
  })
})

describe('a secret', () => {
  const rotated = { ...ENDPOINT, secrets: [{ secret: 'whsec_old', notAfter: NOW }, ...ENDPOINT.secrets] }

  it.each(['whsec_old', SECRET])('counts until its end: %s', (secret) => {
    expect(check({ headers: signedBy(secret), endpoint: rotated, now: NOW - 1 }).ok).toBe(true)
  })

  it.each([
    ['that has ended', 'whsec_old', true],
    ['of another endpoint', 'whsec_sandbox', false],
  ])('%s does not count, and the log can tell', (_which, secret, expired) => {
    const answer = check({ headers: signedBy(secret), endpoint: rotated })
    expect(answer).toEqual(refusal('signature_invalid', 0, expired))
  })

  it('is needed', () => {
    expect(check({ endpoint: { ...ENDPOINT, secrets: [] } })).toMatchObject({ code: 'signature_invalid' })
  })
})

describe('verifying', () => {
  it('never throws and accepts nothing unsigned, whatever is sent', () => {
    const value = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom(SIGNATURE, TIMESTAMP, ''))
    const values = fc.option(fc.array(value, { maxLength: 3 }), { nil: undefined })
    fc.assert(
      fc.property(fc.uint8Array(), values, values, fc.integer(), (body, signature, timestamp, now) => {
        const sent = {
          ...(signature && { 'x-webhook-signature': signature }),
          ...(timestamp && { 'x-webhook-timestamp': timestamp }),
        }
        expect(check({ body, headers: sent, now }).ok).toBe(false)
      }),
    )
  })

  it('accepts whatever was signed in time', () => {
    const skews = fc.oneof(fc.constantFrom(-300, 0, 300), fc.integer({ min: -300, max: 300 }))
    fc.assert(
      fc.property(fc.uint8Array(), fc.string({ minLength: 1 }), skews, (body, secret, skew) => {
        const endpoint = { ...ENDPOINT, secrets: [{ secret, notAfter: null }] }
        const sent = signedBy(secret, String(SECONDS + skew), body)
        expect(check({ body, endpoint, headers: sent }).ok).toBe(true)
      }),
    )
  })
})

describe('a signature of long ago', () => {
  const SIGNED_AT = Date.parse('2020-02-29T12:00:00.000Z')
  const OLD = String(SIGNED_AT / 1000)
  const asOf = (notAfter: number | null | undefined, sent = signedBy('whsec_old', OLD), body = BODY) => {
    const other = { secret: 'whsec_other', notAfter: null }
    const secrets = notAfter === undefined ? [other] : [other, { secret: 'whsec_old', notAfter }]
    return verifySignatureAsOf({ body, headers: sent, endpoint: { secrets } })
  }

  it.each([null, SIGNED_AT + 1])('is accepted where its secret ended at %s', (notAfter) => {
    expect(asOf(notAfter)).toMatchObject({ ok: true, timestamp: OLD })
  })

  it.each([SIGNED_AT, SIGNED_AT - 1])('is refused where its secret ended at %s', (notAfter) => {
    expect(asOf(notAfter)).toEqual(refusal('signature_invalid', null, true))
  })

  it('is refused as any other', () => {
    expect(asOf(undefined)).toEqual(refusal('signature_invalid'))
    expect(asOf(null, signedBy('whsec_old', OLD), Buffer.from('{}'))).toEqual(refusal('signature_invalid'))
    expect(asOf(null, signedBy('whsec_old', `${OLD}000`))).toEqual(refusal('timestamp_invalid'))
    expect(asOf(null, {})).toEqual(refusal('signature_missing'))
  })
})
