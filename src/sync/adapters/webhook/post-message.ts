import querystring from 'node:querystring'
import { Webhook } from 'standardwebhooks'
import type { WebhookAddress } from './address.js'
import { withTimeLimit } from './time-limit.js'

const TIMEOUT_MS = 15_000

/** What came of one attempt. `reason` is for people, and holds nothing of the address. */
export type Answer =
  | { readonly kind: 'answered'; readonly status: number; readonly retryAfter: string | null }
  | { readonly kind: 'failed'; readonly reason: string }

/**
 * Posts a message once, signed by the Standard Webhooks scheme as of `now` (epoch milliseconds). Follows no redirect,
 * and reads nothing of what is answered but the status and `Retry-After`. Rejects only where `signal` gave it up.
 */
export async function postMessage(
  { url, secrets }: WebhookAddress,
  { id, body }: { readonly id: string; readonly body: string },
  now: number,
  signal: AbortSignal,
): Promise<Answer> {
  const { address, authorization } = withoutCredentials(url)
  const headers = {
    'content-type': 'application/json',
    'user-agent': 'Latchkey',
    ...authorization,
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(now / 1000)),
    'webhook-signature': secrets.map((secret) => new Webhook(secret).sign(id, new Date(now), body)).join(' '),
  }
  try {
    return await withTimeLimit(TIMEOUT_MS, signal, async (limited): Promise<Answer> => {
      const response = await fetch(address, {
        method: 'POST',
        redirect: 'manual',
        signal: limited,
        headers,
        body,
      })
      // Whatever it says, and however it ends, the status has said it.
      await response.body?.cancel().catch(() => {})
      return { kind: 'answered', status: response.status, retryAfter: response.headers.get('retry-after') }
    })
  } catch (error) {
    signal.throwIfAborted()
    return { kind: 'failed', reason: reasonOf(error) }
  }
}

/** `fetch` takes none in the address; they are sent as a browser would send them. */
function withoutCredentials(url: string): { address: URL; authorization: { authorization?: string } } {
  const address = new URL(url)
  const { username, password } = address
  if (username === '' && password === '') return { address, authorization: {} }
  address.username = ''
  address.password = ''
  const credentials = `${querystring.unescape(username)}:${querystring.unescape(password)}`
  return {
    address,
    authorization: { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` },
  }
}

/** By the system's own short name: messages may hold the address. */
function reasonOf(error: unknown): string {
  if (error instanceof DOMException && error.name === 'TimeoutError') {
    return `no answer within ${TIMEOUT_MS / 1000} s`
  }
  const cause = error instanceof Error ? error.cause : undefined
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown reason'
  return `no connection (${code})`
}
