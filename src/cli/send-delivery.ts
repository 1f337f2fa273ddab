import { ERROR_CODES, type ErrorCode, LatchkeyError } from '../errors.js'
import type { Receipt } from '../ingest/delivery.js'
import { signBody } from '../provider/signature.js'

export interface SignedSample {
  /** The daemon's address, without a path. */
  readonly url: string
  readonly endpoint: string
  readonly secret: string
  /** Epoch milliseconds, for the signature. */
  readonly sentAt: number
  readonly event: string
  readonly body: string
}

/** Longer than the daemon may take to answer that it could not store the delivery. */
const ANSWER_TIMEOUT_MS = 10_000

/** Delivers as the provider does. Throws `daemon_unreachable`, or the code that the daemon answered. */
export async function sendDelivery({
  url,
  endpoint,
  secret,
  sentAt,
  event,
  body,
}: SignedSample): Promise<Receipt> {
  const timestamp = String(Math.floor(sentAt / 1000))
  const response = await post(`${url}/webhooks/${endpoint}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-webhook-event': event,
      'x-webhook-timestamp': timestamp,
      'x-webhook-signature': signBody(secret, timestamp, Buffer.from(body)),
    },
    body,
  })
  const answer = await readAnswer(response)
  if (response.status === 200 && 'disposition' in answer) return answer as unknown as Receipt
  throw refusal(url, response.status, answer)
}

async function post(url: string, request: RequestInit): Promise<Response> {
  try {
    return await fetch(url, {
      ...request,
      redirect: 'manual',
      signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
    })
  } catch (error) {
    const message = `no daemon answers at ${new URL(url).origin}: start one with \`latchkey serve\``
    throw new LatchkeyError('daemon_unreachable', message, { cause: error })
  }
}

async function readAnswer(response: Response): Promise<Readonly<Record<string, unknown>>> {
  try {
    return Object(await response.json()) as Readonly<Record<string, unknown>>
  } catch {
    return {}
  }
}

function refusal(
  url: string,
  status: number,
  { code, detail }: Readonly<Record<string, unknown>>,
): LatchkeyError {
  const known = ERROR_CODES.find((known) => known === code) satisfies ErrorCode | undefined
  const said = [code, detail].filter((part) => typeof part === 'string').join(': ')
  const message = `${url} answered ${status}${said === '' ? ', which is not what a daemon answers' : ` ${said}`}`
  return new LatchkeyError(known ?? 'daemon_unreachable', message)
}
