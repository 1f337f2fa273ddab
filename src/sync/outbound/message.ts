import { randomBytes } from 'node:crypto'
import querystring from 'node:querystring'
import { Webhook } from 'standardwebhooks'
import { type ChangeType, NEVER_GRANTED } from '../../entitlements/entitlement.js'
import type { AccessSnapshot } from '../../entitlements/model.js'
import type { Environment } from '../../provider/event.js'
import { type Change, formatCursor } from '../../store/changes.js'
import { messageIdOf } from '../../store/message-log.js'
import type { Message, MessageOutcome } from '../../store/message-queue.js'
import type { Post } from '../context.js'
import { type BackOff, backOffMs } from '../limits.js'
import { HeldBackError } from '../outgoing.js'

/** A receiver of access changes. Secret: everything in the URL except its origin may be confidential. */
export interface WebhookAddress {
  readonly id: string
  readonly url: string
  /** `whsec_` and base64; each one signs, so that the receiver can rotate them. */
  readonly secrets: readonly string[]
  readonly types: readonly ChangeType[]
  readonly environments: readonly Environment[]
  /** Its messages gather, and are not sent. */
  readonly disabled: boolean
}

/** The part of a URL that may be shown: without credentials, path or query. */
export function originOf({ url }: WebhookAddress): string {
  return new URL(url).origin
}

/** What is signed and sent. */
export interface Sent {
  readonly id: string
  readonly body: string
}

/**
 * The same at every attempt and address, unless a reload changes the features.
 * @param features that the product gives now
 */
export function sentOf({ epoch, type, change }: Message, features: readonly string[]): Sent {
  return {
    id: messageIdOf(epoch, change.cursor),
    body: bodyOf(type, formatCursor(epoch, change.cursor), change, features),
  }
}

function bodyOf(
  type: ChangeType,
  cursor: string,
  change: Change,
  features: readonly string[],
  mark: { readonly test?: true } = {},
): string {
  const { before, after, cause, ...rest } = change
  const at = iso(change.at)
  return JSON.stringify({
    type,
    timestamp: at,
    ...mark,
    data: { ...rest, cursor, at, before: snapshotJson(before), after: snapshotJson(after), features, cause },
  })
}

/** A message that says that it is a test: about nobody, and not in the log. Its id is new each time. */
export function testOf(type: ChangeType, environment: Environment, now: number): Sent {
  const had: AccessSnapshot = { ...NEVER_GRANTED, active: true, status: 'active', since: now }
  const change: Change = {
    cursor: 0,
    at: now,
    environment,
    customerId: 'cus_test',
    productId: 'pro_test',
    before: type === 'entitlement.granted' ? NEVER_GRANTED : had,
    after:
      type === 'entitlement.revoked'
        ? { ...had, active: false, status: 'expired', since: null, until: now }
        : had,
    cause: { kind: 'clock', eventId: null },
  }
  const id = `msg_test_${randomBytes(8).toString('hex')}`
  return { id, body: bodyOf(type, 'test', change, [], { test: true }) }
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
 * and reads only the status and `Retry-After` of the answer. Rejects only if `signal` aborts it, or `post` holds it back.
 */
export async function postMessage(
  { url, secrets }: WebhookAddress,
  { id, body }: Sent,
  now: number,
  signal: AbortSignal,
  post: Post = fetch,
): Promise<Answer> {
  const { address, credentials } = withoutCredentials(url)
  const headers = {
    'content-type': 'application/json',
    'user-agent': 'Latchkey',
    ...credentials,
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
    const asked = status < 300 || status === GONE ? null : response.headers.get('retry-after')
    return { status, reason: `answered ${status}`, closedUntil: retryAfter(asked, now) }
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof HeldBackError) throw error
    return { status: null, reason: reasonOf(error), closedUntil: null }
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', giveUp)
  }
}

/** Credentials in the URL, sent as a browser would: `fetch` refuses such URLs. */
function withoutCredentials(url: string): { address: URL; credentials: { authorization?: string } } {
  const address = new URL(url)
  const { username, password } = address
  if (username === '' && password === '') return { address, credentials: {} }
  address.username = ''
  address.password = ''
  const both = `${querystring.unescape(username)}:${querystring.unescape(password)}`
  return { address, credentials: { authorization: `Basic ${Buffer.from(both).toString('base64')}` } }
}

/** Only the system's short code: messages may contain the URL. */
function reasonOf(error: unknown): string {
  if (error instanceof DOMException && error.name === 'TimeoutError') {
    return `no answer within ${TIMEOUT_MS / 1000} s`
  }
  const cause = error instanceof Error ? error.cause : undefined
  if (cause instanceof Error && cause.message === 'bad port') {
    return 'no connection (fetch refuses this port: change it in the url)'
  }
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown reason'
  return `no connection (${code})`
}

export function isDelivered({ status }: Answer): boolean {
  return status !== null && status >= 200 && status < 300
}

const BACK_OFF: BackOff = { first: 1_000, most: 3_600_000 }
/** Long enough for a receiver that breaks on a Friday evening. Time for which a message is held back does not count. */
const GIVE_UP_AFTER_MS = 3 * 86_400_000

/** 410 Gone: the receiver will never accept messages again. */
const GONE = 410

/**
 * Decides what to do after an answer, at `now` (epoch milliseconds).
 * @param random from 0 up to 1: spreads the waits of messages that failed together
 */
export function judgeAnswer(
  answer: Answer,
  { attempts, firstAttemptAt, dueAt }: Pick<Message, 'attempts' | 'firstAttemptAt' | 'dueAt'>,
  now: number,
  random: number,
): MessageOutcome['result'] {
  const { status, reason: error, closedUntil } = answer
  if (isDelivered(answer)) return { kind: 'delivered' }
  if (status === GONE) return { kind: 'failed', error, reason: 'gone' }
  const begun = Math.min(now, (firstAttemptAt ?? now) + Math.max(0, now - dueAt))
  if (now - begun >= GIVE_UP_AFTER_MS) return { kind: 'failed', error, reason: 'given_up' }
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
