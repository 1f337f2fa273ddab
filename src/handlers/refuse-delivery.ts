import type { IncomingMessage } from 'node:http'
import type { Logger } from 'pino'
import { LatchkeyError } from '../errors.js'
import type { Endpoint } from '../provider/endpoint.js'
import type { SignatureRefusal } from '../provider/signature.js'
import type { FailureLimit } from './failure-limit.js'
import type { RequestMetrics } from './metrics.js'

export interface RefusalDeps {
  readonly failures: FailureLimit
  readonly clientAddress: (req: IncomingMessage) => string
  readonly metrics: Pick<RequestMetrics, 'rejected' | 'refused' | 'clockSkew'>
  readonly log: Logger
}

/** What the sender of an unauthentic delivery may know: which check failed, and no more. */
const SAID_TO_SENDER: Readonly<Record<SignatureRefusal['code'], string>> = {
  signature_missing: 'The delivery carries no signature.',
  signature_invalid: 'The signature does not prove this body.',
  timestamp_invalid: 'The timestamp is not in Unix seconds.',
  timestamp_out_of_tolerance: 'The timestamp is too far from now.',
}

/**
 * Counts and logs an unauthentic delivery; the log says what the operator can do about it. Over the
 * limit of its address it is still counted, and no longer logged: nobody can fill a disk from outside.
 *
 * @throws LatchkeyError always: the refusal's own code, or `rate_limited` over the limit.
 */
export function createRefusal({ failures, clientAddress, metrics, log }: RefusalDeps) {
  return async (req: IncomingMessage, endpoint: Endpoint, refusal: SignatureRefusal): Promise<never> => {
    const { code, skewSeconds, expiredSecret } = refusal
    const address = clientAddress(req)
    metrics.rejected(endpoint.name, code)
    if (code === 'timestamp_out_of_tolerance' && skewSeconds !== null) {
      metrics.clockSkew(endpoint.name, skewSeconds)
    }

    const { limited, justLimited, retryAfterSeconds } = failures(address)
    if (!limited) {
      const hint = hintOf(refusal)
      log.warn(
        { endpoint: endpoint.name, code, skewSeconds, expiredSecret, address, hint },
        'delivery refused',
      )
      throw new LatchkeyError(code, SAID_TO_SENDER[code])
    }
    if (justLimited) log.warn({ endpoint: endpoint.name, address, retryAfterSeconds }, 'address limited')
    throw new LatchkeyError('rate_limited', 'Too many deliveries from this address failed their check.', {
      retryAfterSeconds,
    })
  }
}

function hintOf({ code, skewSeconds, expiredSecret }: SignatureRefusal): string {
  switch (code) {
    case 'signature_missing':
      return 'not from the payments service, or a proxy dropped the header'
    case 'timestamp_invalid':
      return 'not from the payments service, or a proxy changed the header'
    case 'signature_invalid':
      return expiredSecret
        ? 'signed with a secret that is past its notAfter: give the sender the new one'
        : 'no configured secret signed this: wrong secret, or a changed body'
    case 'timestamp_out_of_tolerance':
      return `the signature is right but its time is ${sayOffset(skewSeconds ?? 0)} ours: check the clocks`
    default:
      return code satisfies never
  }
}

function sayOffset(skewSeconds: number): string {
  return `${Math.abs(skewSeconds)} s ${skewSeconds > 0 ? 'ahead of' : 'behind'}`
}
