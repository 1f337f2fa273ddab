import querystring from 'node:querystring'
import { Webhook } from 'standardwebhooks'
import type { Environment } from '../../provider/event.js'
import { type AccessSnapshot, formatCursor } from '../../store/changes.js'
import type { Message, MessageOutcome } from '../../store/messages.js'
import { type BackOff, backOffMs } from '../limits.js'

/** Where changes of access are posted. It holds secrets: the address itself may be one, but for its origin. */
export interface WebhookAddress {
  readonly url: string
  /** `whsec_` and base64; each signs, so that the receiver may change from one to the next. */
  readonly secrets: readonly string[]
  readonly environments: readonly Environment[]
}

/** What may be told of an address: neither its credentials nor its path nor its query. */
export function originOf({ url }: WebhookAddress): string {
  return new URL(url).origin
}

/** The same at every attempt: by it a receiver knows what it has had. It holds no full stop, as the scheme asks. */
export function messageId({ epoch, change }: Message): string {
  return `msg_${epoch}_${change.cursor}`
}

/** The text that is signed and sent: the same at every attempt. */
function messageBody({ epoch, change }: Message): string {
  const { before, after, cause, ...rest } = change
  const at = iso(change.at)
  return JSON.stringify({
    type: 'entitlement.changed',
    timestamp: at,
    data: {
      ...rest,
      cursor: formatCursor(epoch, change.cursor),
      at,
      before: snapshotJson(before),
      after: snapshotJson(after),
      cause,
    },
  })
}

function snapshotJson({ active, status, since, until }: AccessSnapshot) {
  return { active, status, since: iso(since), until: iso(until) }
}

function iso(instant: number | null): string | null {
  return instant === null ? null : new Date(instant).toISOString()
}

const TIMEOUT_MS = 15_000

/** What came of one attempt. */
export interface Answer {
  /** Null: there was no answer. */
  readonly status: number | null
  /** For people; it holds nothing of the address. */
  readonly reason: string
  /** Until when the receiver asks to be sent nothing, in epoch milliseconds; null: it does not. */
  readonly closedUntil: number | null
}

/**
 * Posts a message once, signed by the Standard Webhooks scheme as of `now` (epoch milliseconds). Follows no redirect,
 * and reads nothing of what is answered but the status and `Retry-After`. Rejects only where `signal` gave it up.
 */
export async function postMessage(
  { url, secrets }: WebhookAddress,
  message: Message,
  now: number,
  signal: AbortSignal,
): Promise<Answer> {
  const { address, authorization } = withoutCredentials(url)
  const id = messageId(message)
  const body = messageBody(message)
  const headers = {
    'content-type': 'application/json',
    'user-agent': 'Latchkey',
    ...authorization,
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(now / 1000)),
    'webhook-signature': secrets.map((secret) => new Webhook(secret).sign(id, new Date(now), body)).join(' '),
  }
  // By hand, since on Node 22 each `AbortSignal.any` keeps two kilobytes for as long as one of its signals lives.
  const attempt = new AbortController()
  const giveUp = () => attempt.abort(signal.reason)
  const timer = setTimeout(() => attempt.abort(new DOMException('', 'TimeoutError')), TIMEOUT_MS)
  signal.addEventListener('abort', giveUp)
  try {
    signal.throwIfAborted()
    const options = { method: 'POST', redirect: 'manual', signal: attempt.signal, headers, body } as const
    const response = await fetch(address, options)
    // Whatever it says, and however it ends, the status has said it.
    await response.body?.cancel().catch(() => {})
    const { status } = response
    const closedUntil =
      status < 300 || status === GONE ? null : retryAfter(response.headers.get('retry-after'), now)
    return { status, reason: `answered ${status}`, closedUntil }
  } catch (error) {
    signal.throwIfAborted()
    return { status: null, reason: reasonOf(error), closedUntil: null }
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', giveUp)
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

const BACK_OFF: BackOff = { first: 1_000, most: 3_600_000 }
/** Long enough for a receiver that breaks on a Friday evening. */
const GIVE_UP_AFTER_MS = 3 * 86_400_000

/** The receiver's own word that it will never take anything again. */
const GONE = 410

/**
 * What follows from an answer, as of `now` (epoch milliseconds).
 * @param random from 0 up to 1: spreads the waits of messages that failed together
 */
export function judgeAnswer(
  { status, reason: error, closedUntil }: Answer,
  { attempts, firstAttemptAt }: Pick<Message, 'attempts' | 'firstAttemptAt'>,
  now: number,
  random: number,
): MessageOutcome['result'] {
  if (status !== null && status >= 200 && status < 300) return { kind: 'delivered' }
  if (status === GONE) return { kind: 'parked', error, reason: 'gone' }
  const begun = firstAttemptAt ?? now
  if (now - begun >= GIVE_UP_AFTER_MS) return { kind: 'parked', error, reason: 'given_up' }
  const nextAttemptAt = Math.max(now + backOffMs(attempts + 1, BACK_OFF, random), closedUntil ?? 0)
  return { kind: 'retry', error, firstAttemptAt: begun, nextAttemptAt }
}

/** An answer that asks for more is taken for a mistake. */
const MAX_WAIT_MS = 86_400_000

/**
 * Until when a `Retry-After` asks to wait, in epoch milliseconds; null where it says nothing that can be read,
 * or that has passed. It is seconds, or a date (RFC 9110, 10.2.3).
 */
export function retryAfter(header: string | null, now: number): number | null {
  if (header === null) return null
  const asked = /^\d{1,10}$/.test(header) ? now + Number(header) * 1000 : Date.parse(header)
  return asked > now ? Math.min(asked, now + MAX_WAIT_MS) : null
}
