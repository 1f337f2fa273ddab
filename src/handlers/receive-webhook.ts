import type { IncomingMessage } from 'node:http'
import { LatchkeyError } from '../errors.js'
import type { Delivery, Receipt } from '../ingest/delivery.js'
import type { Endpoint } from '../provider/endpoint.js'
import { EVENT_HEADER, readClaim, verifySignature } from '../provider/signature.js'
import { createFailureLimit } from './failure-limit.js'
import type { RequestMetrics } from './metrics.js'
import type { RawHandler } from './raw-handler.js'
import { MAX_BODY_BYTES, readBody, requireReadable } from './read-body.js'
import { createRefusal, type RefusalDeps } from './refuse-delivery.js'
import { createUnreadRefusal } from './refuse-unread.js'
import { requireMethod } from './route.js'
import { sendJson } from './send.js'
import { markProved } from './server.js'

export interface ReceiveWebhookDeps extends RefusalDeps {
  /** Asked for each delivery, since a reload may change the endpoints. */
  readonly endpointNamed: (name: string) => Endpoint | undefined
  /** Of these the log names those to which a delivery may be sent. */
  readonly endpointNames: () => readonly string[]
  /** Epoch milliseconds. */
  readonly clock: () => number
  /** Resolves once the delivery and what follows from it are committed; else rejects, with `not_stored`. */
  readonly ingest: (delivery: Delivery) => Promise<Receipt>
  readonly metrics: RequestMetrics
}

/**
 * POST /webhooks/:endpoint. Answers 200 only when the delivery and what follows from it are committed:
 * the sender takes any 2xx as final. Nothing is parsed, and nothing unauthentic gets past here.
 */
export function receiveWebhook(deps: ReceiveWebhookDeps): RawHandler<'endpoint'> {
  const { endpointNamed, endpointNames, clock, ingest, metrics } = deps
  const refuse = createRefusal(deps)
  const refuseUnread = createUnreadRefusal({
    ...deps,
    // Of its own: how many signatures of an address may fail is not for these to change.
    failures: createFailureLimit(),
    endpointNames: () => endpointNames().filter((name) => endpointNamed(name) !== undefined),
  })

  /** Reads no body whose headers are refused already: anybody can send one. */
  async function readClaimed(req: IncomingMessage, endpoint: Endpoint): Promise<Buffer> {
    requireReadable(req, MAX_BODY_BYTES)
    const claim = readClaim(req.headersDistinct)
    return claim.ok ? readBody(req, MAX_BODY_BYTES) : refuse(req, endpoint, claim)
  }

  return async (req, res, params) => {
    const endpoint = endpointNamed(params.endpoint)
    if (endpoint === undefined) {
      return refuseUnread(req, null, new LatchkeyError('endpoint_not_found', 'No such endpoint.'))
    }
    requireMethod(req, res, 'POST')
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
      body,
      headers: {
        event: headers[EVENT_HEADER]?.join(', ') ?? null,
        timestamp: check.timestamp,
        signature: check.signature,
      },
      receivedAt: now,
    })
    metrics.delivered(endpoint.name, receipt.disposition)
    sendJson(res, 200, { received: true, id: receipt.id, disposition: receipt.disposition })
  }
}
