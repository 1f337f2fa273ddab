import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Endpoint, SigningSecret } from './endpoint.js'

/** The delivery's headers, in lower case as Node gives them. The signature does not cover the event header. */
export const EVENT_HEADER = 'x-webhook-event'
export const TIMESTAMP_HEADER = 'x-webhook-timestamp'
export const SIGNATURE_HEADER = 'x-webhook-signature'

const SIGNATURE_FORM = /^v1=[0-9a-fA-F]{64}$/
/** Ten digits of Unix seconds last until 2286; a timestamp in milliseconds has thirteen. */
const TIMESTAMP_FORM = /^[0-9]{1,10}$/

/** Each header with every value sent: Node's `req.headersDistinct`. */
export type DistinctHeaders = Readonly<Record<string, readonly string[] | undefined>>

export interface SignedDelivery {
  /** The exact bytes received: nothing is parsed before they are verified. */
  readonly body: Uint8Array
  readonly headers: DistinctHeaders
  readonly endpoint: Pick<Endpoint, 'secrets' | 'toleranceSeconds'>
  /** Epoch milliseconds. */
  readonly now: number
}

export interface SignatureRefusal {
  readonly ok: false
  readonly code:
    | 'signature_missing'
    | 'signature_invalid'
    | 'timestamp_invalid'
    | 'timestamp_out_of_tolerance'
  /** How far the sender's clock is ahead of ours (negative: behind); null if the timestamp is unreadable. */
  readonly skewSeconds: number | null
  /** Whether an expired secret signed it. Shown only to operators. */
  readonly expiredSecret: boolean
}

/** Problems that do not depend on the time of signing. */
export interface LastingRefusal extends SignatureRefusal {
  readonly code: Exclude<SignatureRefusal['code'], 'timestamp_out_of_tolerance'>
}

export interface ProvedSignature {
  readonly ok: true
  readonly timestamp: string
  readonly signature: string
}

export type SignatureCheck = ProvedSignature | SignatureRefusal

/** Signs as the sender does: hex HMAC-SHA256 over the timestamp, a dot and the exact bytes of the body. */
export function signBody(secret: string, timestamp: string, body: Uint8Array): string {
  return `v1=${digest(secret, timestamp, body).toString('hex')}`
}

/**
 * Verifies that a holder of one of the endpoint's secrets signed these bytes near `now`. Never throws.
 *
 * Both headers must have been sent exactly once: joined values could pass for one. The tolerance is inclusive, and
 * checked last, so that only senders who know a secret learn about a clock difference.
 */
export function verifySignature({ body, headers, endpoint, now }: SignedDelivery): SignatureCheck {
  const claim = readClaim(headers)
  if (!claim.ok) return claim
  const skewSeconds = Number(claim.timestamp) - Math.floor(now / 1000)
  const check = checkClaim(claim, body, endpoint.secrets, now)
  if (!check.ok) return { ...check, skewSeconds }
  if (Math.abs(skewSeconds) > endpoint.toleranceSeconds) {
    return refuse('timestamp_out_of_tolerance', skewSeconds)
  }
  return check
}

/**
 * Verifies an old delivery: a secret must have been valid when it was signed.
 * Only for deliveries that were verified on receipt, since a secret that leaked later can sign for the past.
 */
export function verifySignatureAsOf({
  body,
  headers,
  endpoint,
}: Omit<SignedDelivery, 'endpoint' | 'now'> & {
  readonly endpoint: Pick<Endpoint, 'secrets'>
}): ProvedSignature | LastingRefusal {
  const claim = readClaim(headers)
  return claim.ok ? checkClaim(claim, body, endpoint.secrets, Number(claim.timestamp) * 1000) : claim
}

/** Both headers, well-formed but not verified. */
export type Claim = ProvedSignature

/** Parses the headers, which needs no body: a delivery with malformed ones can be refused before its body arrives. */
export function readClaim(headers: DistinctHeaders): Claim | LastingRefusal {
  const [signature, ...moreSignatures] = headers[SIGNATURE_HEADER] ?? []
  if (!signature && moreSignatures.length === 0) return refuse('signature_missing')
  if (!signature || moreSignatures.length > 0 || !SIGNATURE_FORM.test(signature)) {
    return refuse('signature_invalid')
  }

  const [timestamp, ...moreTimestamps] = headers[TIMESTAMP_HEADER] ?? []
  if (!timestamp || moreTimestamps.length > 0 || !TIMESTAMP_FORM.test(timestamp)) {
    return refuse('timestamp_invalid')
  }
  return { ok: true, timestamp, signature }
}

/** @param at the instant at which a secret must be valid, in epoch milliseconds */
function checkClaim(
  claim: Claim,
  body: Uint8Array,
  secrets: readonly SigningSecret[],
  at: number,
): ProvedSignature | LastingRefusal {
  const claimed = Buffer.from(claim.signature.slice('v1='.length), 'hex')
  const signedBy = (some: readonly SigningSecret[]) => anySigned(some, claim.timestamp, body, claimed)
  if (signedBy(secrets.filter((secret) => counts(secret, at)))) return claim
  const expiredSecret = signedBy(secrets.filter((secret) => !counts(secret, at)))
  return refuse('signature_invalid', null, expiredSecret)
}

function refuse<Code extends SignatureRefusal['code']>(
  code: Code,
  skewSeconds: number | null = null,
  expiredSecret = false,
) {
  return { ok: false, code, skewSeconds, expiredSecret } as const
}

function counts({ notAfter }: SigningSecret, at: number): boolean {
  return notAfter === null || at < notAfter
}

/** Tries every secret even after a match: the time must not reveal which of them signed. */
function anySigned(
  secrets: readonly SigningSecret[],
  timestamp: string,
  body: Uint8Array,
  claimed: Buffer,
): boolean {
  let matches = 0
  for (const { secret } of secrets) {
    if (timingSafeEqual(digest(secret, timestamp, body), claimed)) matches += 1
  }
  return matches > 0
}

function digest(secret: string, timestamp: string, body: Uint8Array): Buffer {
  return createHmac('sha256', secret).update(`${timestamp}.`).update(body).digest()
}
