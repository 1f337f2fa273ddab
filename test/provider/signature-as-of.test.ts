import { describe, expect, it } from 'vitest'
import type { SigningSecret } from '../../src/provider/endpoint.js'
import { signBody, verifySignatureAsOf } from '../../src/provider/signature.js'

const SIGNED_AT = Date.parse('2020-02-29T12:00:00.000Z')
const TIMESTAMP = String(SIGNED_AT / 1000)
const BODY = Buffer.from('{"id":"evt_1"}')
const OTHER: SigningSecret = { secret: 'whsec_other', notAfter: null }

function check(secrets: readonly SigningSecret[], { body = BODY, timestamp = TIMESTAMP } = {}) {
  const signature = signBody('whsec_old', timestamp, BODY)
  const headers = { 'x-webhook-signature': [signature], 'x-webhook-timestamp': [timestamp] }
  return verifySignatureAsOf({ body, headers, endpoint: { secrets } })
}

const endingAt = (notAfter: number | null): SigningSecret => ({ secret: 'whsec_old', notAfter })

describe('an old signature', () => {
  it.each([null, SIGNED_AT + 1])('is accepted years later where its secret ended at %s', (notAfter) => {
    expect(check([OTHER, endingAt(notAfter)])).toMatchObject({ ok: true, timestamp: TIMESTAMP })
  })

  it.each([SIGNED_AT, SIGNED_AT - 1])(
    'is refused where its secret ended at %s, and that is told',
    (notAfter) => {
      expect(check([OTHER, endingAt(notAfter)])).toEqual({
        ok: false,
        code: 'signature_invalid',
        skewSeconds: null,
        expiredSecret: true,
      })
    },
  )

  it('is refused where no secret of the endpoint signed it', () => {
    expect(check([OTHER])).toMatchObject({ ok: false, code: 'signature_invalid', expiredSecret: false })
  })

  it('is refused over other bytes', () => {
    const body = Buffer.from('{"id":"evt_2"}')
    expect(check([endingAt(null)], { body })).toMatchObject({ ok: false, code: 'signature_invalid' })
  })

  it('is refused with a timestamp in milliseconds', () => {
    expect(check([endingAt(null)], { timestamp: String(SIGNED_AT) })).toMatchObject({
      ok: false,
      code: 'timestamp_invalid',
    })
  })

  it('is missing where there is none', () => {
    expect(verifySignatureAsOf({ body: BODY, headers: {}, endpoint: { secrets: [OTHER] } })).toMatchObject({
      ok: false,
      code: 'signature_missing',
    })
  })
})
