import querystring from 'node:querystring'
import { Webhook } from 'standardwebhooks'
import type { AccessSnapshot } from '../../entitlements/model.js'
import type { Environment } from '../../provider/event.js'
import { formatCursor } from '../../store/changes.js'
import type { Message, MessageOutcome } from '../../store/messages.js'
import type { Post } from '../context.js'
import { type BackOff, backOffMs } from '../limits.js'

/** The receiver of access changes. Secret: everything in the URL except its origin may be confidential. */
export interface WebhookAddress {
  readonly url: string
  /** `whsec_` and base64; each one signs, so that the receiver can rotate them. */
  readonly secrets: readonly string[]
  readonly environments: readonly Environment[]
}

/** The part of a URL that may be shown: without credentials, path or query. */
export function originOf({ url }: WebhookAddress): string {
  return new URL(url).origin
}

/** The same at every attempt: receivers use it to drop duplicates. The signature scheme allows no full stop in it. */
export function messageId({ epoch, change }: Message): string {
  return `msg_${epoch}_${change.cursor}`
}

interface SentMessage extends Message {
  /** That the product gives now. */
  readonly features: readonly string[]
}

/** The text that is signed and sent: the same at every attempt, unless a reload changes the features. */
function messageBody({ epoch, change, features }: SentMessage): string {
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
      features,
      cause,
    },
  })
}

/** The only numbers in it are instants. */
function snapshotJson(snapshot: AccessSnapshot): Readonly<Record<string, unknown>> {
  const json = Object.entries(snapshot).map(([name, value]) => [
    name,
    typeof value === 'number' ? iso(value) : value,
  ])
  return Object.fromEntries(json)
}

function iso(instant: number): string {
  return new Date(instant).toISOString()
}

const TIMEOUT_MS = 15_000

/** The result of one attempt. */
export interface Answer {
  /** Null if there was no answer. */
  readonly status: number | null
  /** For people; contains nothing of the URL. */
  readonly reason: string
  /** The receiver asks for no messages until then, in epoch milliseconds; null: it does not. */
  readonly closedUntil: number | null
}

/**
 * Posts a message once, signed by the Standard Webhooks scheme at `now` (epoch milliseconds). Follows no redirects,
 * and reads only the status and `Retry-After` of the answer. Rejects only if `signal` aborts it.
 */
export async function postMessage(
  { url, secrets }: WebhookAddress,
  message: SentMessage,
  now: number,
  signal: AbortSignal,
  post: Post = fetch,
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
  // By hand: on Node 22, each `AbortSignal.any` keeps two kilobytes while one of its signals lives.
  const attempt = new AbortController()
  const giveUp = () => attempt.abort(signal.reason)
  const timer = setTimeout(() => attempt.abort(new DOMException('', 'TimeoutError')), TIMEOUT_MS)
  signal.addEventListener('abort', giveUp)
  try {
    signal.throwIfAborted()
    const options = { method: 'POST', redirect: 'manual', signal: attempt.signal, headers, body } as const
    const response = await post(address, options)
    // The body does not matter: the status has decided.
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

/** Credentials in the URL, sent as a browser would: `fetch` refuses such URLs. */
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

/** Only the system's short code: messages may contain the URL. */
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

/** 410 Gone: the receiver will never accept messages again. */
const GONE = 410

/**
 * Decides what to do after an answer, at `now` (epoch milliseconds).
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

/** A longer `Retry-After` is treated as a mistake. */
const MAX_WAIT_MS = 86_400_000

/**
 * Reads a `Retry-After` as the end of the wait, in epoch milliseconds; null if it is unreadable or past. Its value is
 * seconds or a date (RFC 9110, 10.2.3).
 */
export function retryAfter(header: string | null, now: number): number | null {
  if (header === null) return null
  const asked = /^\d{1,10}$/.test(header) ? now + Number(header) * 1000 : Date.parse(header)
  return asked > now ? Math.min(asked, now + MAX_WAIT_MS) : null
}
