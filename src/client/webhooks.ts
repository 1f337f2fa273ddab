/* Messages of the outbound webhooks, for the server that receives them. Needs only WebCrypto. */

import type { components } from '../../openapi.js'

export type WebhookMessage = components['schemas']['WebhookMessage']

export interface VerifiedMessage extends WebhookMessage {
  /** The `webhook-id`: the same at every attempt, at every address and in a replay. Drop repeats by it. */
  readonly id: string
}

const STATUSES = {
  signature_missing: 401,
  signature_invalid: 401,
  timestamp_invalid: 401,
  timestamp_out_of_tolerance: 401,
  body_invalid: 400,
  invalid_options: 500,
} as const

export type WebhookErrorCode = keyof typeof STATUSES

/** Why `verify` takes a request for no message. `invalid_options`: your code has to change, not the request. */
export class WebhookError extends Error {
  readonly code: WebhookErrorCode
  /** What to answer, and what Express answers if no handler takes the error. */
  readonly status: 400 | 401 | 500

  constructor(code: WebhookErrorCode, message: string) {
    super(message)
    this.name = 'WebhookError'
    this.code = code
    this.status = STATUSES[code]
  }
}

/** Of `fetch`, or of Node. */
export type WebhookHeaders =
  | { get(name: string): string | null }
  | Readonly<Record<string, string | readonly string[] | undefined>>

export interface VerifyOptions {
  /** How many seconds the time of signing may be off, in either direction. Default 300. */
  readonly toleranceSeconds?: number
  /** Epoch milliseconds. Default `Date.now`. */
  readonly now?: () => number
}

/**
 * Proves that a holder of one of the secrets signed these bytes, and that it was recently.
 * @param body as it came: text or bytes, not what a parser made of it
 * @param secrets one, or several while you rotate them: `whsec_` and base64
 * @throws WebhookError
 */
export async function verify(
  body: string | Uint8Array,
  headers: WebhookHeaders,
  secrets: string | readonly string[] | undefined,
  { toleranceSeconds = 300, now = Date.now }: VerifyOptions = {},
): Promise<VerifiedMessage> {
  const bytes = bytesOf(body)
  const keys = [secrets].flat().map(keyOf)
  if (keys.length === 0) throw new WebhookError('invalid_options', 'verify needs a secret.')
  if (!(toleranceSeconds >= 0))
    throw new WebhookError('invalid_options', '`toleranceSeconds` must be a number of seconds from 0.')

  const [id, timestamp, signature] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) =>
    headerIn(headers, name),
  )
  if (!id || !timestamp || !signature)
    throw new WebhookError(
      'signature_missing',
      'The request has no webhook-id, webhook-timestamp or webhook-signature: it is not from Latchkey, or a proxy drops headers.',
    )
  // Ten digits of Unix seconds last until 2286.
  if (!/^\d{1,10}$/.test(timestamp))
    throw new WebhookError('timestamp_invalid', 'webhook-timestamp must be Unix seconds.')
  const signed = joined(new TextEncoder().encode(`${id}.${timestamp}.`), bytes)
  if (!(await isSignedBy(keys, signed, signature)))
    throw new WebhookError(
      'signature_invalid',
      'No secret has signed this body. Check the secret, and pass the body exactly as it came.',
    )
  // Last, so that only holders of a secret learn about the clock.
  const offBy = Number(timestamp) - Math.floor(now() / 1000)
  // Not the other way round: a clock that gives no number proves nothing.
  if (!(Math.abs(offBy) <= toleranceSeconds))
    throw new WebhookError(
      'timestamp_out_of_tolerance',
      `The message was signed ${Math.abs(offBy)} seconds ${offBy < 0 ? 'ago' : 'ahead of this clock'}. Check the clocks.`,
    )
  return { ...messageIn(bytes), id }
}

function bytesOf(body: string | Uint8Array): Uint8Array {
  if (typeof body === 'string') return new TextEncoder().encode(body)
  // Not `instanceof`: test runners give code a Uint8Array of another realm.
  if (ArrayBuffer.isView(body)) return body
  throw new WebhookError(
    'invalid_options',
    'The body must be text or bytes, as it came. A parser has read it: use express.raw() or express.text() on this route.',
  )
}

/** The daemon accepts no shorter one. A value that is no secret, such as a missing variable, must not become a key. */
const LEAST_KEY_BYTES = 24

function keyOf(secret: unknown): Uint8Array<ArrayBuffer> {
  try {
    const text = typeof secret === 'string' ? secret.replace(/^whsec_/, '') : ''
    const key = Uint8Array.from(atob(text), (one) => one.charCodeAt(0))
    if (key.length >= LEAST_KEY_BYTES) return key
  } catch {
    // Not base64.
  }
  throw new WebhookError(
    'invalid_options',
    'A secret is missing, or is not whsec_ and at least 24 bytes in base64.',
  )
}

/** Undefined if it was not sent, or more than once. */
function headerIn(headers: WebhookHeaders, name: string): string | undefined {
  if (typeof headers.get === 'function') return headers.get(name) ?? undefined
  const values = Object.entries(headers).flatMap(([key, value]) =>
    key.toLowerCase() === name ? (value ?? []) : [],
  )
  return values.length === 1 ? values[0] : undefined
}

function joined(head: Uint8Array, body: Uint8Array): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(head.length + body.length)
  all.set(head)
  all.set(body, head.length)
  return all
}

const HMAC = { name: 'HMAC', hash: 'SHA-256' }

/** Whether one of the keys made one of the signatures, which are `v1,` and base64, with spaces between. */
async function isSignedBy(
  keys: readonly Uint8Array<ArrayBuffer>[],
  signed: Uint8Array<ArrayBuffer>,
  header: string,
): Promise<boolean> {
  const signatures = header.split(' ').flatMap((one) => signatureIn(one) ?? [])
  for (const raw of keys) {
    const key = await crypto.subtle.importKey('raw', raw, HMAC, false, ['verify'])
    for (const signature of signatures) {
      // Compares in constant time.
      if (await crypto.subtle.verify(HMAC, key, signature, signed)) return true
    }
  }
  return false
}

/** Null: of another version, or not base64. */
function signatureIn(text: string): Uint8Array<ArrayBuffer> | null {
  const [, base64] = /^v1,([A-Za-z0-9+/]{43}=)$/.exec(text) ?? []
  return base64 === undefined ? null : Uint8Array.from(atob(base64), (one) => one.charCodeAt(0))
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function messageIn(bytes: Uint8Array): WebhookMessage {
  try {
    const message = JSON.parse(new TextDecoder().decode(bytes)) as WebhookMessage
    if (typeof message.type === 'string' && isObject(message.data)) return message
  } catch {
    // No JSON.
  }
  throw new WebhookError('body_invalid', 'The body is signed, but it is not a message from Latchkey.')
}
