import { createHmac } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { describe, expect, it } from 'vitest'
import { verify, WebhookError } from '../../src/client/webhooks.js'

const secretOf = (text: string) => `whsec_${Buffer.from(text).toString('base64')}`
const SECRET = secretOf('the secret of this receiver....')
const NEXT = secretOf('the one that comes after it....')
const NOW = Date.UTC(2026, 2, 1, 12)
const options = { now: () => NOW }

const MESSAGE = {
  type: 'entitlement.granted',
  timestamp: '2026-03-01T12:00:00.000Z',
  data: { customerId: 'cüs_1', productId: 'pro_1', after: { active: true } },
}
const BODY = JSON.stringify(MESSAGE)

/** As the daemon signs with each of its secrets. */
function headersOf(secrets: readonly string[], body = BODY, at = NOW, id = 'msg_1') {
  return {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at / 1000)),
    'webhook-signature': secrets.map((secret) => new Webhook(secret).sign(id, new Date(at), body)).join(' '),
  }
}
const SIGNED = headersOf([SECRET])

describe('a message that was signed', () => {
  it.each([
    ['text', BODY],
    ['a Buffer', Buffer.from(BODY)],
    [
      'bytes inside others',
      new Uint8Array(Buffer.from(`<${BODY}>`)).subarray(1, Buffer.byteLength(BODY) + 1),
    ],
  ])('is verified as %s', async (_, body) => {
    expect(await verify(body, SIGNED, SECRET, options)).toEqual({ ...MESSAGE, id: 'msg_1' })
  })

  it.each([
    ['of fetch', new Headers(SIGNED)],
    ['of Node, distinct', Object.fromEntries(Object.entries(SIGNED).map(([name, value]) => [name, [value]]))],
    [
      'in other letters',
      Object.fromEntries(Object.entries(SIGNED).map(([name, value]) => [name.toUpperCase(), value])),
    ],
  ])('is verified with headers %s', async (_, headers) => {
    expect(await verify(BODY, headers, SECRET, options)).toMatchObject({ id: 'msg_1' })
  })

  it('is verified by any secret of the receiver, with any signature of the daemon, while they rotate', async () => {
    for (const [signing, verifying] of [
      [[SECRET, NEXT], [SECRET]],
      [[SECRET, NEXT], [NEXT]],
      [[SECRET], [NEXT, SECRET]],
    ] as const)
      expect(await verify(BODY, headersOf(signing), verifying, options)).toMatchObject(MESSAGE)
    const [, base64 = ''] = SECRET.split('_')
    expect(await verify(BODY, SIGNED, base64, options)).toMatchObject(MESSAGE)
    const older = `v1a,other v2,${'A'.repeat(43)}= v1,short ${SIGNED['webhook-signature']}`
    const headers = { ...SIGNED, 'webhook-signature': older }
    expect(await verify(BODY, headers, SECRET, options)).toMatchObject(MESSAGE)
  })

  it('is verified within the tolerance, which is five minutes unless another is given', async () => {
    const at = (seconds: number, tolerance = {}) =>
      verify(BODY, SIGNED, SECRET, { now: () => NOW + seconds * 1000, ...tolerance })
    for (const seconds of [300, -300]) expect(await at(seconds)).toMatchObject(MESSAGE)
    for (const seconds of [301, -301])
      await expect(at(seconds)).rejects.toMatchObject({ code: 'timestamp_out_of_tolerance', status: 401 })
    expect(await at(301, { toleranceSeconds: 600 })).toMatchObject(MESSAGE)
    await expect(at(1, { toleranceSeconds: 0 })).rejects.toMatchObject({ code: 'timestamp_out_of_tolerance' })
    await expect(verify(BODY, SIGNED, SECRET)).rejects.toMatchObject({ code: 'timestamp_out_of_tolerance' })
  })

  it.each(['', 'plain text', '[]', 'null', '{"type":7}', '\u{FEFF}{'])(
    'but is none of Latchkey, is refused: %j',
    async (body) => {
      const headers = headersOf([SECRET], body)
      // The library takes an empty body for a message without content.
      const raw = createHmac('sha256', Buffer.from(SECRET.slice(6), 'base64')).update(
        `msg_1.${NOW / 1000}.${body}`,
      )
      expect(headers['webhook-signature']).toBe(`v1,${raw.digest('base64')}`)
      await expect(verify(body, headers, SECRET, options)).rejects.toMatchObject({
        code: 'body_invalid',
        status: 400,
      })
    },
  )
})

describe('what was not signed', () => {
  it.each([
    ['another body', `${BODY} `, SIGNED, 'signature_invalid'],
    ['another id', BODY, { ...SIGNED, 'webhook-id': 'msg_2' }, 'signature_invalid'],
    ['another time', BODY, { ...SIGNED, 'webhook-timestamp': `${NOW / 1000 + 1}` }, 'signature_invalid'],
    ['another secret', BODY, headersOf([NEXT]), 'signature_invalid'],
    ['a form that is none', BODY, { ...SIGNED, 'webhook-signature': 'v1,' }, 'signature_invalid'],
    ['no signature', BODY, { ...SIGNED, 'webhook-signature': undefined }, 'signature_missing'],
    ['an empty id', BODY, { ...SIGNED, 'webhook-id': '' }, 'signature_missing'],
    ['two ids', BODY, { ...SIGNED, 'Webhook-Id': 'msg_1' }, 'signature_missing'],
    ['no headers', BODY, new Headers(), 'signature_missing'],
    ['a time that is none', BODY, { ...SIGNED, 'webhook-timestamp': '1e9' }, 'timestamp_invalid'],
  ] as const)('is refused: %s', async (_, body, headers, code) => {
    const failure = await verify(body, headers, SECRET, options).catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(WebhookError)
    expect(failure).toMatchObject({ name: 'WebhookError', code, status: 401 })
  })

  it('does not learn how far the clocks are apart', async () => {
    const late = { now: () => NOW + 3_600_000 }
    await expect(verify(`${BODY} `, SIGNED, SECRET, late)).rejects.toMatchObject({
      code: 'signature_invalid',
    })
  })
})

it.each([
  ['no secret', BODY, undefined, {}],
  ['an empty secret', BODY, '', {}],
  ['an empty list', BODY, [], {}],
  ['null, as a missing variable may be', BODY, null as never, {}],
  ['null in a list', BODY, [SECRET, null] as never, {}],
  ['its name as a text', BODY, 'null', {}],
  ['true', BODY, true as never, {}],
  ['a short secret', BODY, `whsec_${btoa('short')}`, {}],
  ['a secret that is not base64', BODY, 'whsec_%', {}],
  ['one bad secret of two', BODY, [SECRET, 'whsec_'], {}],
  ['a body that a parser has read', MESSAGE as never, SECRET, {}],
  ['a tolerance that is none', BODY, SECRET, { toleranceSeconds: Number.NaN }],
] as const)(
  'a mistake in the app is named as one, and shows no secret: %s',
  async (_, body, secrets, wrong) => {
    const failure = await verify(body, SIGNED, secrets, { ...options, ...wrong }).catch(
      (error: unknown) => error,
    )
    expect(failure).toMatchObject({ code: 'invalid_options', status: 500 })
    expect(String(failure)).not.toContain(SECRET.slice(6))
  },
)
