import type { IncomingMessage } from 'node:http'
import { z } from 'zod'
import { type ErrorCode, isLatchkeyError, LatchkeyError } from '../errors.js'
import type { Delivery, Disposition, Receipt } from '../ingest/delivery.js'
import type { RequestMetrics, UnreadCode } from '../operations/metrics.js'
import type { DeliveryOutcome, Pulse } from '../operations/pulse.js'
import type { Endpoint } from '../provider/endpoint.js'
import { EVENT_HEADER, readClaim, type SignatureRefusal, verifySignature } from '../provider/signature.js'
import { createFailureLog } from './authenticate.js'
import { MAX_BODY_BYTES, readBody, requireReadable } from './body.js'
import { methodNotAllowed } from './mount.js'
import { type MountDeps, type RawHandler, type Route, route } from './route.js'
import { sendJson } from './send.js'
import { factsOf, markProved } from './server.js'

export interface WebhookDeps extends MountDeps {
  /** Resolves once the delivery and its effects are committed; else rejects, with `not_stored`. */
  readonly ingest: (delivery: Delivery) => Promise<Receipt>
  readonly clientAddress: (req: IncomingMessage) => string
  readonly metrics: RequestMetrics
  readonly pulse: Pick<Pulse, 'note'>
}

export const WEBHOOK_PATH = '/webhooks/:endpoint'

export const webhookRoutes: readonly Route<WebhookDeps>[] = [
  route(`POST ${WEBHOOK_PATH}`, {
    operationId: 'receiveEvent',
    summary: 'Receives a signed event. A 200 means that it is stored and that every answer includes it.',
    scope: null,
    isSigned: true,
    environments: 'none',
    query: 'any',
    body: z.unknown(),
    answer: z.object({
      received: z.literal(true),
      id: z.string().nullable(),
      disposition: z.enum(['applied', 'ignored', 'held', 'quarantined', 'duplicate']),
    }),
    errors: [
      'signature_missing',
      'signature_invalid',
      'timestamp_invalid',
      'timestamp_out_of_tolerance',
      'rate_limited',
      'endpoint_not_found',
      'not_stored',
      'store_unavailable',
    ],
    timedAs: 'webhooks',
    plain: receiveWebhook,
  }),
]

/** Parses nothing and lets nothing unauthentic pass: the sender takes any 2xx as final. */
function receiveWebhook(deps: WebhookDeps): RawHandler<'endpoint'> {
  const { endpoints, clock, ingest, metrics, pulse } = deps
  const refuse = createRefusal(deps)
  const refuseUnread = createUnreadRefusal(deps)

  /** Reads no body whose headers are refused: anybody can send one. */
  async function readClaimed(req: IncomingMessage, endpoint: Endpoint): Promise<Buffer> {
    requireReadable(req, MAX_BODY_BYTES)
    const claim = readClaim(req.headersDistinct)
    return claim.ok ? readBody(req, MAX_BODY_BYTES) : refuse(req, endpoint, claim)
  }

  async function receive(...[req, res, params]: Parameters<RawHandler<'endpoint'>>): Promise<Disposition> {
    const endpoint = endpoints().find(({ name }) => name === params.endpoint)
    if (endpoint === undefined) {
      return refuseUnread(req, null, new LatchkeyError('endpoint_not_found', 'No such endpoint.'))
    }
    factsOf(req).endpoint = endpoint.name
    if (req.method !== 'POST') throw methodNotAllowed(res, 'POST')
    const headers = req.headersDistinct
    const body = await readClaimed(req, endpoint).catch((error: unknown) =>
      refuseUnread(req, endpoint.name, error),
    )
    const now = clock()
    const check = verifySignature({ body, headers, endpoint, now })
    if (!check.ok) return refuse(req, endpoint, check)
    markProved(req)

    const receipt = await ingest({
      endpoint: endpoint.name,
      environment: endpoint.environment,
      aheadAtMostMs: endpoint.aheadAtMostMs,
      body,
      headers: {
        event: headers[EVENT_HEADER]?.join(', ') ?? null,
        timestamp: check.timestamp,
        signature: check.signature,
      },
      receivedAt: now,
    }).catch((error: unknown) => {
      metrics.notStored(endpoint.name)
      throw error
    })
    metrics.delivered(endpoint.name, receipt.disposition)
    sendJson(res, 200, { received: true, id: receipt.id, disposition: receipt.disposition })
    return receipt.disposition
  }

  return async (req, res, params) => {
    const startedAt = performance.now()
    let outcome: DeliveryOutcome = 'notStored'
    try {
      outcome = await receive(req, res, params)
    } catch (error) {
      if (!isLatchkeyError(error, 'not_stored') && !isLatchkeyError(error, 'store_unavailable'))
        outcome = 'refused'
      throw error
    } finally {
      const { endpoint } = factsOf(req)
      if (endpoint !== null && req.method === 'POST')
        pulse.note(endpoint, outcome, performance.now() - startedAt)
    }
  }
}

/** What the sender of an unauthentic delivery may know: which check failed, no more. */
const SAID_TO_SENDER: Readonly<Record<SignatureRefusal['code'], string>> = {
  signature_missing: 'The delivery carries no signature.',
  signature_invalid: 'The signature does not match this body.',
  timestamp_invalid: 'The timestamp is not in Unix seconds.',
  timestamp_out_of_tolerance: 'The timestamp is too far from now.',
}

/**
 * Counts and logs an unauthentic delivery; the log says what the operator can do.
 *
 * @throws LatchkeyError always: the refusal's own code, or `rate_limited` over the limit of its address.
 */
function createRefusal(deps: WebhookDeps) {
  const { metrics } = deps
  const noteFailure = createFailureLog('delivery refused', deps)
  return async (req: IncomingMessage, endpoint: Endpoint, refusal: SignatureRefusal): Promise<never> => {
    const { code, skewSeconds, expiredSecret } = refusal
    metrics.rejected(endpoint.name, code)
    if (code === 'timestamp_out_of_tolerance' && skewSeconds !== null) {
      metrics.clockSkew(endpoint.name, skewSeconds)
    }
    const hint = HINTS[code](refusal)
    const logged = { endpoint: endpoint.name, code, skewSeconds, expiredSecret, hint }
    const { limited, retryAfterSeconds } = noteFailure(req, logged)
    if (!limited) throw new LatchkeyError(code, SAID_TO_SENDER[code])
    throw new LatchkeyError('rate_limited', 'Too many deliveries from this address failed their check.', {
      retryAfterSeconds,
    })
  }
}

/** What the operator can do about it. */
const HINTS: Readonly<Record<SignatureRefusal['code'], (refusal: SignatureRefusal) => string>> = {
  signature_missing: () => 'not from the payments service, or a proxy dropped the header',
  timestamp_invalid: () => 'not from the payments service, or a proxy changed the header',
  signature_invalid: ({ expiredSecret }) =>
    expiredSecret
      ? 'signed with a secret that is past its notAfter: give the sender the new one'
      : 'no configured secret signed this: wrong secret, or a changed body',
  timestamp_out_of_tolerance: ({ skewSeconds }) =>
    `the signature is right but its time is ${sayOffset(skewSeconds ?? 0)} ours: check the clocks`,
}

function sayOffset(skewSeconds: number): string {
  return `${Math.abs(skewSeconds)} s ${skewSeconds > 0 ? 'ahead of' : 'behind'}`
}

/** Why a delivery was refused by its path, headers or body size, and what the operator can do. */
const UNREAD_HINTS: Readonly<Record<UnreadCode, (names: string) => string>> = {
  endpoint_not_found: (names) =>
    `its path does not end with the name of an endpoint: send it to /webhooks/ and one of ${names}`,
  body_too_large: () =>
    'larger than any event, or in thousands of tiny pieces: not from the payments service, or sent to the wrong place',
  body_incomplete: () =>
    'its sender disconnected early or took too long: look at the proxy and the network between',
  encoding_not_supported: () => 'compressed: not from the payments service, or a proxy changed the body',
  not_stored: () =>
    'bodies being received fill all the memory reserved for them: many large ones arrive at once',
}

const isUnread = (code: ErrorCode): code is UnreadCode => code in UNREAD_HINTS

/**
 * Counts and logs a delivery that was refused before its signature was checked; the log says what the operator can do,
 * and nothing that the sender chose.
 *
 * @throws always `error`, so that the limit changes no answer
 */
function createUnreadRefusal(deps: WebhookDeps) {
  const { metrics, endpoints } = deps
  // A separate limit, so that these do not use up the signature failures of an address.
  const noteFailure = createFailureLog('delivery refused', deps)
  return async (req: IncomingMessage, endpoint: string | null, error: unknown): Promise<never> => {
    const code = isLatchkeyError(error) && isUnread(error.code) ? error.code : undefined
    // Another method is not a delivery; any other error is a bug.
    if (req.method !== 'POST' || code === undefined) throw error
    metrics.refused(code)
    const names = endpoints().map(({ name }) => name)
    noteFailure(req, {
      ...(endpoint !== null && { endpoint }),
      code,
      hint: UNREAD_HINTS[code](names.join(', ')),
    })
    throw error
  }
}
