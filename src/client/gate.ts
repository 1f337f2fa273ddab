/* What a middleware decides: pass, or the answer of the app. */

import type { Check, Client, Needed } from './client.js'
import { isUnavailable } from './request.js'

type MaybePromise<Value> = Value | Promise<Value>

/** Who asks; null, undefined or an empty text: nobody is signed in. */
type Asking<Request> = (request: Request) => MaybePromise<string | null | undefined>

export type GateOptions<Request> = {
  readonly client: Pick<Client, 'check'>
} & (
  | {
      /** The id of the customer who asks. */
      readonly customerId: Asking<Request>
      readonly externalRef?: never
    }
  | {
      /** Your own reference to them: the client then asks the daemon each time. */
      readonly externalRef: Asking<Request>
      readonly customerId?: never
    }
)

/** An RFC 9457 problem, and the status and headers to send it with. */
export interface Refusal {
  readonly status: 401 | 402 | 503
  readonly headers: Readonly<Record<string, string>>
  readonly body: {
    readonly type: string
    readonly title: string
    readonly status: number
    readonly detail: string
    readonly code: 'not_signed_in' | 'access_required' | 'access_unavailable'
    readonly feature?: string
    readonly productId?: string
  }
}

const REFUSALS = {
  not_signed_in: [401, 'Not signed in', 'Sign in, then try again.'],
  access_required: [
    402,
    'Access required',
    'Your plan does not include this. Choose one that does, then try again.',
  ],
  access_unavailable: [
    503,
    'Access unavailable',
    'Your access can’t be looked up now. Try again in a moment.',
  ],
} as const

const RETRY_AFTER_SECONDS = '5'

/**
 * Null: the request may pass. An answer that the daemon did not give is not a refusal to pay: 503.
 * @throws what the function that names the customer throws, and LatchkeyError where the client is configured wrongly
 */
export async function refusalOf<Request>(
  request: Request,
  needed: Needed,
  { client, customerId, externalRef }: GateOptions<Request>,
): Promise<Refusal | null> {
  const id = await (customerId ?? externalRef)(request)
  if (id === null || id === undefined || id === '') return refuse('not_signed_in', needed)
  const check: Pick<Check, 'active' | 'reason'> = await client.check(
    customerId === undefined ? { externalRef: id } : id,
    needed,
  )
  if (check.active) return null
  return refuse(check.reason === null ? 'access_required' : 'access_unavailable', needed)
}

/** The refusal that an error stands for; null: it is another one. */
export function refusalFor(error: unknown, needed: Needed): Refusal | null {
  return isUnavailable(error) ? refuse('access_unavailable', needed) : null
}

function refuse(code: keyof typeof REFUSALS, needed: Needed): Refusal {
  const [status, title, detail] = REFUSALS[code]
  return {
    status,
    headers: {
      'Content-Type': 'application/problem+json',
      'Cache-Control': 'no-store',
      ...(status === 503 && { 'Retry-After': RETRY_AFTER_SECONDS }),
    },
    body: { type: `urn:latchkey:problem:${code}`, title, status, detail, code, ...needed },
  }
}
