import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type DistinctHeaders,
  type SignedDelivery,
  signBody,
  verifySignature,
} from '../../src/provider/signature.js'

const NOW = Date.parse('2026-03-01T12:00:00.900Z')
const SECONDS = Math.floor(NOW / 1000)
const TIMESTAMP = String(SECONDS)
const BODY = Buffer.from('{"id":"evt_1"}')
const SECRET = 'whsec_current'
const ENDPOINT = { secrets: [{ secret: SECRET, notAfter: null }], toleranceSeconds: 300 }
const SIGNATURE = signBody(SECRET, TIMESTAMP, BODY)

function headers(signature: string | readonly string[], timestamp: string | readonly string[] = TIMESTAMP) {
  return { 'x-webhook-signature': [signature].flat(), 'x-webhook-timestamp': [timestamp].flat() }
}

function check(over: Partial<SignedDelivery> = {}) {
  return verifySignature({ body: BODY, headers: headers(SIGNATURE), endpoint: ENDPOINT, now: NOW, ...over })
}

function signedAt(timestamp: string): DistinctHeaders {
  return headers(signBody(SECRET, timestamp, BODY), timestamp)
}

describe('signing', () => {
  it('is the hex HMAC-SHA256 of timestamp, dot and body, keyed with the literal secret', () => {
    const hex = createHmac('sha256', 'whsec_current').update(`${TIMESTAMP}.{"id":"evt_1"}`).digest('hex')
    expect(SIGNATURE).toBe(`v1=${hex}`)
  })

  it('matches a value computed elsewhere', () => {
    expect(signBody('whsec_test', '1700000000', Buffer.from('{}'))).toBe(
      'v1=35495024f4ef3f94e5a93e22221544c4b75e9a42300cd965ab81cb85cd994e91',
    )
  })
})

describe('a signature', () => {
  it('is accepted over the exact bytes', () => {
    expect(check()).toEqual({ ok: true, timestamp: TIMESTAMP, signature: SIGNATURE })
  })

  it.each([
    ['absent', {}],
    ['empty', headers('')],
  ])('is missing when it is %s', (_, sent) => {
    expect(check({ headers: sent })).toEqual({
      ok: false,
      code: 'signature_missing',
      skewSeconds: null,
      expiredSecret: false,
    })
  })

  const hex = SIGNATURE.slice(3)
  it.each([
    ['sent twice', [SIGNATURE, SIGNATURE]],
    ['sent twice, once empty', ['', SIGNATURE]],
    ['joined by an intermediary', `${SIGNATURE}, ${SIGNATURE}`],
    ['of an unknown scheme', `v0=${hex}`],
    ['of another unknown scheme', `sha256=${hex}`],
    ['without a scheme', hex],
    ['of odd length', `v1=${hex.slice(1)}`],
    ['truncated', `v1=${hex.slice(2)}`],
    ['too long', `v1=${hex}00`],
    ['followed by what is no hex', `v1=${hex.slice(2)}zz`],
    ['followed by a line break', `${SIGNATURE}\n`],
    ['only a scheme', 'v1='],
  ])('is invalid when it is %s', (_, signature) => {
    expect(check({ headers: headers(signature) })).toMatchObject({ ok: false, code: 'signature_invalid' })
  })

  it.each([
    ['one byte changed', Buffer.from('{"id":"evt_2"}')],
    ['the JSON written anew', Buffer.from('{ "id": "evt_1" }')],
    ['a byte order mark put ahead', Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), BODY])],
    ['a byte missing', BODY.subarray(1)],
    ['nothing left', Buffer.alloc(0)],
  ])('is invalid for a body with %s', (_, body) => {
    expect(check({ body })).toMatchObject({ ok: false, code: 'signature_invalid' })
  })

  it('covers bytes that are no UTF-8', () => {
    const body = Buffer.from([0xff, 0xfe, 0x00, 0x80])
    expect(check({ body, headers: headers(signBody(SECRET, TIMESTAMP, body)) })).toMatchObject({ ok: true })
    expect(
      check({ body: Buffer.from(body.toString()), headers: headers(signBody(SECRET, TIMESTAMP, body)) }).ok,
    ).toBe(false)
  })

  it('does not let digits move from the body into the timestamp', () => {
    const body = Buffer.from('1.{"id":"evt_1"}')
    const signature = signBody(
      SECRET,
      TIMESTAMP.slice(0, 9),
      Buffer.from(`${TIMESTAMP.slice(9)}.{"id":"evt_1"}`),
    )
    expect(check({ body, headers: headers(signature) })).toMatchObject({
      ok: false,
      code: 'signature_invalid',
    })
  })

  it('may be written in upper-case hex', () => {
    expect(check({ headers: headers(`v1=${hex.toUpperCase()}`) }).ok).toBe(true)
  })
})

describe('a timestamp', () => {
  it.each([
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
    expect(check({ headers: headers(signature, timestamp) })).toEqual({
      ok: false,
      code: 'timestamp_invalid',
      skewSeconds: null,
      expiredSecret: false,
    })
  })

  it.each([300, -300, 0])('is in tolerance %i s off', (skew) => {
    expect(check({ headers: signedAt(String(SECONDS + skew)) }).ok).toBe(true)
  })

  it.each([301, -301, -86_400 * 365])('is out of tolerance %i s off, which is told with its sign', (skew) => {
    expect(check({ headers: signedAt(String(SECONDS + skew)) })).toEqual({
      ok: false,
      code: 'timestamp_out_of_tolerance',
      skewSeconds: skew,
      expiredSecret: false,
    })
  })

  it('is measured against the tolerance of the endpoint', () => {
    const strict = { ...ENDPOINT, toleranceSeconds: 5 }
    expect(check({ headers: signedAt(String(SECONDS - 5)), endpoint: strict }).ok).toBe(true)
    expect(check({ headers: signedAt(String(SECONDS - 6)), endpoint: strict })).toMatchObject({
      code: 'timestamp_out_of_tolerance',
    })
  })

  it('tells how far off it is even when no secret signed it', () => {
    expect(check({ headers: headers(SIGNATURE, String(SECONDS + 900)) })).toMatchObject({
      code: 'signature_invalid',
      skewSeconds: 900,
    })
  })
})

describe('secrets', () => {
  const old = { secret: 'whsec_old', notAfter: NOW }
  const rotated = { ...ENDPOINT, secrets: [old, ...ENDPOINT.secrets] }
  const signedByOld = headers(signBody('whsec_old', TIMESTAMP, BODY))

  it.each(['whsec_old', SECRET])('all count until their end: %s', (secret) => {
    const sent = headers(signBody(secret, TIMESTAMP, BODY))
    expect(check({ headers: sent, endpoint: rotated, now: NOW - 1 }).ok).toBe(true)
  })

  it('stop counting at their end, and the log can tell', () => {
    expect(check({ headers: signedByOld, endpoint: rotated })).toEqual({
      ok: false,
      code: 'signature_invalid',
      skewSeconds: 0,
      expiredSecret: true,
    })
  })

  it('of another endpoint do not count', () => {
    expect(
      check({ headers: headers(signBody('whsec_sandbox', TIMESTAMP, BODY)), endpoint: rotated }),
    ).toMatchObject({
      code: 'signature_invalid',
      expiredSecret: false,
    })
  })

  it('accept nothing where there is none', () => {
    expect(check({ endpoint: { ...ENDPOINT, secrets: [] } })).toMatchObject({ code: 'signature_invalid' })
  })
})

describe('verifying', () => {
  it('never throws and accepts nothing unsigned, whatever is sent', () => {
    const values = fc.option(
      fc.array(fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom(SIGNATURE, TIMESTAMP, '')), {
        maxLength: 3,
      }),
      { nil: undefined },
    )
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
    fc.assert(
      fc.property(
        fc.uint8Array(),
        fc.string({ minLength: 1 }),
        fc.integer({ min: -300, max: 300 }),
        (body, secret, skew) => {
          const timestamp = String(SECONDS + skew)
          const endpoint = { ...ENDPOINT, secrets: [{ secret, notAfter: null }] }
          expect(
            check({ body, endpoint, headers: headers(signBody(secret, timestamp, body), timestamp) }).ok,
          ).toBe(true)
        },
      ),
    )
  })
})
