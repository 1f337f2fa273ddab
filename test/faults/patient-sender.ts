import { signBody } from '../../src/provider/signature.js'
import type { SentEvent } from '../process/load.js'
import { SECRET, type ServedDaemon } from '../process/served.js'

/** As long as the provider waits for an answer. */
const PATIENCE_MS = 5_000

export interface Answer {
  readonly status: number
  /** What a problem is called; undefined where it went well. */
  readonly code?: string
  readonly disposition?: string
}

/** Null where the connection broke, or no answer came in time. */
export async function send({ url }: ServedDaemon, { body }: SentEvent): Promise<Answer | null> {
  const timestamp = String(Math.floor(Date.now() / 1000))
  try {
    const answer = await fetch(`${url}/webhooks/live`, {
      method: 'POST',
      body,
      headers: {
        'X-Webhook-Timestamp': timestamp,
        'X-Webhook-Signature': signBody(SECRET, timestamp, Buffer.from(body)),
      },
      signal: AbortSignal.timeout(PATIENCE_MS),
    })
    return { ...((await answer.json()) as Omit<Answer, 'status'>), status: answer.status }
  } catch {
    return null
  }
}

export const NOT_STORED = { status: 503, code: 'not_stored' }
