import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import {
  BODY,
  DIGEST,
  expectRefused,
  knownBefore,
  lines,
  NOW_TEXT,
  post,
  RIGHT,
  SECONDS,
  signature,
  signedAt,
} from './deliveries.js'
import { warnings } from './observed.js'
import type { HeaderLines } from './raw-post.js'
import { LIVE_SECRET, NOW, runDaemon, SANDBOX_SECRET, sharedDaemon } from './running-daemon.js'
import { storedUnder } from './stored.js'

// Several daemons: an address whose signatures fail too often is refused before anything is read.
const accepting = sharedDaemon()

/** The signed event under an id, and of a payment, of its own. */
function bodyOf(id: string): string {
  return BODY.replace('evt_signed', id).replace('pay_told', `pay_${id}`)
}

describe('a signature that can not be one', () => {
  const refusing = sharedDaemon()

  it.each<[name: string, headers: HeaderLines, code: string]>([
    ['missing', lines(NOW_TEXT), 'signature_missing'],
    ['empty', lines(NOW_TEXT, ''), 'signature_missing'],
    ['nothing but spaces', lines(NOW_TEXT, '   '), 'signature_missing'],
    ['sent twice, the right one first', lines(NOW_TEXT, RIGHT, `v1=${'a'.repeat(64)}`), 'signature_invalid'],
    ['sent twice, the right one last', lines(NOW_TEXT, `v1=${'a'.repeat(64)}`, RIGHT), 'signature_invalid'],
    ['sent twice, right both times', lines(NOW_TEXT, RIGHT, RIGHT), 'signature_invalid'],
    ['two in one line', lines(NOW_TEXT, `${RIGHT}, ${RIGHT}`), 'signature_invalid'],
    ['of the scheme v0', lines(NOW_TEXT, `v0=${DIGEST}`), 'signature_invalid'],
    ['of the scheme sha256', lines(NOW_TEXT, `sha256=${DIGEST}`), 'signature_invalid'],
    ['without a scheme', lines(NOW_TEXT, DIGEST), 'signature_invalid'],
    ['a scheme alone', lines(NOW_TEXT, 'v1='), 'signature_invalid'],
    ['a digit short', lines(NOW_TEXT, RIGHT.slice(0, -1)), 'signature_invalid'],
    ['a digit over', lines(NOW_TEXT, `${RIGHT}0`), 'signature_invalid'],
    ['right, with a tail that is not hex', lines(NOW_TEXT, `${RIGHT}zz`), 'signature_invalid'],
    ['not hex at its end', lines(NOW_TEXT, `${RIGHT.slice(0, -2)}zz`), 'signature_invalid'],
    ['the first half of the digest', lines(NOW_TEXT, RIGHT.slice(0, 35)), 'signature_invalid'],
    ['a single byte', lines(NOW_TEXT, 'v1=ab'), 'signature_invalid'],
    ['twice as long', lines(NOW_TEXT, RIGHT + DIGEST), 'signature_invalid'],
  ])('%s is refused', async (_name, headers, code) => {
    const known = await knownBefore(refusing(), code)
    await expectRefused(refusing(), await post(refusing(), headers), code, { known })
  })
})

describe('a timestamp that can not be one', () => {
  const refusing = sharedDaemon()
  const swallowed = lines(`${NOW_TEXT}.1`, signature(NOW_TEXT, `1.${BODY}`))
  const written = [
    '',
    'abc',
    '1e9',
    `${SECONDS}abc`,
    `+${SECONDS}`,
    `-${SECONDS}`,
    `${SECONDS}.0`,
    String(NOW),
    'Infinity',
    `0x${SECONDS.toString(16)}`,
    '2026-03-01T12:00:00Z',
  ]

  it.each<[name: string, headers: HeaderLines]>([
    ['missing', [['X-Webhook-Signature', RIGHT]]],
    ['sent twice', [['X-Webhook-Timestamp', NOW_TEXT], ...signedAt(NOW_TEXT)]],
    ['that takes in the beginning of the signed body', swallowed],
    ...written.map((timestamp): [string, HeaderLines] => [JSON.stringify(timestamp), signedAt(timestamp)]),
  ])('%s is refused, however it is signed', async (_name, headers) => {
    const known = await knownBefore(refusing(), 'timestamp_invalid')
    await expectRefused(refusing(), await post(refusing(), headers), 'timestamp_invalid', { known })
  })
})

describe('the age of a delivery', () => {
  const refusing = sharedDaemon()

  it.each([-300, -1, 0, 1, 300])('is accepted at %i s', async (skew) => {
    const [id, timestamp, warned] = [`evt_${skew}`, String(SECONDS + skew), warnings(accepting()).length]
    const body = bodyOf(id)
    expect((await post(accepting(), lines(timestamp, signature(timestamp, body)), body)).status).toBe(200)
    expect(await storedUnder(accepting(), id)).toMatchObject([{ event_id: id, disposition: 'applied' }])
    expect(warnings(accepting())).toHaveLength(warned)
  })

  it.each([
    [-301, 'behind'],
    [301, 'ahead of'],
    [-86_400, 'behind'],
    [9_999_999_999 - SECONDS, 'ahead of'],
  ])('is refused at %i s, and the operator is told which clock is off', async (skewSeconds, side) => {
    const code = 'timestamp_out_of_tolerance'
    const timestamp = String(SECONDS + skewSeconds)
    const known = await knownBefore(refusing(), code)
    const answer = await post(refusing(), signedAt(timestamp))
    const claimed = [signature(timestamp).slice('v1='.length)]
    await expectRefused(refusing(), answer, code, { skewSeconds, claimed, known })
    expect(answer.text).not.toContain(String(Math.abs(skewSeconds)))
    expect(warnings(refusing()).at(-1)?.hint).toContain(`${Math.abs(skewSeconds)} s ${side} ours`)
  })

  it('goes by the tolerance of its endpoint', async () => {
    const live = { environment: 'live', secrets: [LIVE_SECRET], toleranceSeconds: 10 }
    const daemon = await runDaemon({ config: { endpoints: { live } } })
    expect((await post(daemon, signedAt(String(SECONDS - 10)))).status).toBe(200)
    expect((await post(daemon, signedAt(String(SECONDS - 11)))).status).toBe(401)
  })
})

describe('a right signature of something else', () => {
  const refusing = sharedDaemon()
  const reserialised = JSON.stringify(JSON.parse(BODY), null, 2)

  it.each<[name: string, headers: HeaderLines, body: string | Buffer]>([
    [
      'digits moved from the timestamp to the body',
      lines(NOW_TEXT.slice(0, -1), signature(NOW_TEXT, '7')),
      '07',
    ],
    ['a body serialised anew', lines(NOW_TEXT, RIGHT), reserialised],
    ['one byte changed', lines(NOW_TEXT, RIGHT), BODY.replace('pay_told', 'pay_tolc')],
    ['one byte dropped', lines(NOW_TEXT, RIGHT), BODY.slice(0, -1)],
    ['one byte added', lines(NOW_TEXT, RIGHT), `${BODY}\n`],
    ['a byte order mark added', lines(NOW_TEXT, RIGHT), `\ufeff${BODY}`],
    ['an empty body', lines(NOW_TEXT, RIGHT), ''],
    ['another secret', lines(NOW_TEXT, signature(NOW_TEXT, BODY, 'whsec_wrong')), BODY],
    ['the secret without its prefix', lines(NOW_TEXT, signature(NOW_TEXT, BODY, LIVE_SECRET.slice(6))), BODY],
    ["a sandbox endpoint's secret", lines(NOW_TEXT, signature(NOW_TEXT, BODY, SANDBOX_SECRET)), BODY],
  ])('%s is refused', async (_name, headers, body) => {
    const known = await knownBefore(refusing(), 'signature_invalid')
    const skewSeconds = Number(headers[0]?.[1]) - SECONDS
    const claimed = headers
      .map(([, value]) => value.replace('v1=', ''))
      .filter((value) => value.length === 64)
    const answer = await post(refusing(), headers, body)
    await expectRefused(refusing(), answer, 'signature_invalid', { skewSeconds, claimed, known })
    expect(warnings(refusing()).at(-1)?.hint).toContain('wrong secret')
  })

  it('is refused as a wrong secret, not as a wrong clock, when both are wrong', async () => {
    const known = await knownBefore(refusing(), 'signature_invalid')
    const old = String(SECONDS - 1000)
    const answer = await post(refusing(), lines(old, signature(old, BODY, 'whsec_wrong')))
    await expectRefused(refusing(), answer, 'signature_invalid', { skewSeconds: -1000, known })
  })
})

describe('the exact bytes', () => {
  it('count, not their text: invalid UTF-8 with a right signature is kept', async () => {
    const body = Buffer.from([0x7b, 0xff, 0xfe, 0x00, 0xc3, 0x7d])
    const answer = await post(accepting(), lines(NOW_TEXT, signature(NOW_TEXT, body)), body)
    expect(answer.status).toBe(200)
    expect(JSON.parse(answer.text)).toEqual({ received: true, id: null, disposition: 'quarantined' })
    const id = `sha256:${createHash('sha256').update(body).digest('hex')}`
    expect(await storedUnder(accepting(), id)).toMatchObject([
      { disposition: 'quarantined', reason: 'not_utf8', body },
    ])
  })

  it('are stored beside what signed them', async () => {
    await post(accepting(), [...lines(NOW_TEXT, RIGHT), ['X-Webhook-Event', 'payment.succeeded']])
    const [row] = await storedUnder(accepting(), 'evt_signed')
    expect(row?.body?.toString()).toBe(BODY)
    expect(JSON.parse(row?.headers ?? '')).toEqual({
      event: 'payment.succeeded',
      timestamp: NOW_TEXT,
      signature: RIGHT,
    })
  })

  it('may be signed in upper-case hex', async () => {
    const body = bodyOf('evt_upper_case')
    const [scheme, digest] = signature(NOW_TEXT, body).split('=')
    const headers = lines(NOW_TEXT, `${scheme}=${digest?.toUpperCase()}`)
    expect((await post(accepting(), headers, body)).status).toBe(200)
  })
})
