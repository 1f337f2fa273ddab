import { createHmac } from 'node:crypto'
import { expect } from 'vitest'
import { metric, warnings } from './observed.js'
import { type HeaderLines, type RawAnswer, rawPost } from './raw-post.js'
import { LIVE_SECRET, NOW, type RunningDaemon, SANDBOX_SECRET } from './running-daemon.js'
import { expectNothingStored } from './stored.js'

/** What the clock shows, in whole seconds. */
export const SECONDS = Math.floor(NOW / 1000)
/** An event that tells of a person, a payment and a product. */
export const BODY = JSON.stringify({
  id: 'evt_signed',
  type: 'payment.succeeded',
  createdAt: '2026-03-01T11:00:00.000Z',
  data: { id: 'pay_told', customer: { id: 'cus_told', email: 'told@example.com' }, product: 'pro_told' },
})
/** Nothing of these may ever be logged, or told to the sender. */
const NEVER_TOLD = ['pay_told', 'cus_told', 'told@example.com', LIVE_SECRET, SANDBOX_SECRET]

/** Signs by the provider's own words: nothing of the daemon takes part. */
export function signature(timestamp: string, body: string | Buffer = BODY, secret = LIVE_SECRET): string {
  return `v1=${createHmac('sha256', secret).update(`${timestamp}.`).update(body).digest('hex')}`
}

/** The two headers that prove a delivery; the signature may be left out, or given twice. */
export function lines(timestamp: string, ...signatures: string[]): HeaderLines {
  return [
    ['X-Webhook-Timestamp', timestamp],
    ...signatures.map((value) => ['X-Webhook-Signature', value] as const),
  ]
}

export const NOW_TEXT = String(SECONDS)
export const RIGHT = signature(NOW_TEXT)
export const DIGEST = RIGHT.slice('v1='.length)

export function signedAt(timestamp: string): HeaderLines {
  return lines(timestamp, signature(timestamp))
}

/** What the operator knew before a delivery. */
interface Known {
  readonly warnings: number
  readonly rejected: number | null
  readonly skewSeconds: number | null
}

const NOTHING_KNOWN: Known = { warnings: 0, rejected: null, skewSeconds: null }

function seriesOf(endpoint: string, code: string) {
  return {
    rejected: `latchkey_signatures_rejected_total{endpoint="${endpoint}",code="${code}"}`,
    skewSeconds: `latchkey_clock_skew_seconds{endpoint="${endpoint}"}`,
  }
}

/** To be asked before a delivery to `live` which will be refused so, where others were refused already. */
export async function knownBefore(daemon: RunningDaemon, code: string): Promise<Known> {
  const series = seriesOf('live', code)
  return {
    warnings: warnings(daemon).length,
    rejected: await metric(daemon, series.rejected),
    skewSeconds: await metric(daemon, series.skewSeconds),
  }
}

/** Checks the whole of a refusal: what the sender is told, what is kept, and what the operator gets to know. */
export async function expectRefused(
  daemon: RunningDaemon,
  answer: RawAnswer,
  code: string,
  {
    endpoint = 'live',
    skewSeconds = null as number | null,
    claimed = [] as readonly string[],
    known = NOTHING_KNOWN,
  } = {},
): Promise<void> {
  expect(answer.status).toBe(401)
  expect(answer.headers['www-authenticate']).toBe('Signature')
  expect(answer.headers['content-type']).toBe('application/problem+json')
  expect(JSON.parse(answer.text)).toMatchObject({ status: 401, code })
  await expectNothingStored(daemon)

  const warned = warnings(daemon).slice(known.warnings)
  expect(warned).toMatchObject([{ msg: 'delivery refused', endpoint, code, skewSeconds }])
  const series = seriesOf(endpoint, code)
  expect(await metric(daemon, series.rejected)).toBe((known.rejected ?? 0) + 1)
  const skew = code === 'timestamp_out_of_tolerance' ? skewSeconds : known.skewSeconds
  expect(await metric(daemon, series.skewSeconds)).toBe(skew)

  const said = JSON.stringify(daemon.logged()) + answer.text
  for (const secret of [...NEVER_TOLD, DIGEST, ...claimed]) expect(said).not.toContain(secret)
}

export function post(
  daemon: RunningDaemon,
  headers: HeaderLines,
  body: string | Buffer = BODY,
): Promise<RawAnswer> {
  return rawPost(`${daemon.webhooksUrl}/webhooks/live`, headers, body)
}

/** The same two headers, right for this body, as a request's head takes them. */
export function headersOf(body: string | Buffer): Record<string, string> {
  return Object.fromEntries(lines(NOW_TEXT, signature(NOW_TEXT, body)))
}
