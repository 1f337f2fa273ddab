/* One call to the payments API: what is sent, what counts as an answer, and which failures are tried again. */

import { setTimeout as wait } from 'node:timers/promises'
import pLimit from 'p-limit'
import pRetry from 'p-retry'
import { z } from 'zod'
import type { Issue } from '../errors.js'
import type { Environment } from '../provider/event.js'
import { type JsonObject, parseJsonBody } from '../provider/json.js'
import { KEY_HEADER } from '../provider/requests.js'
import { type Answer, exchange, MAX_BODY_BYTES } from './exchange.js'
import { type FailureDetails, type FailureKind, PaymentsApiError } from './failure.js'
import { failureSchema, fieldErrorsSchema, successSchema } from './wire.js'

export interface TransportOptions {
  readonly environment: Environment
  /** Https, or http to this machine, without a query; all paths are relative to it. */
  readonly baseUrl: string
  readonly apiKey: string
  /** Epoch milliseconds. */
  readonly clock: () => number
  /** From 0 up to 1: spreads the waits of calls that failed together. */
  readonly random: () => number
  /** Rejects when the signal aborts. */
  readonly sleep?: (ms: number, signal: AbortSignal) => Promise<void>
  /** How many calls may be under way at once. */
  readonly atOnce?: number
  /** Of one attempt, its body included. */
  readonly timeoutMs?: number
  /** How often a failed call is tried again. */
  readonly retries?: number
  /** Hears of each failure that is tried again after a wait. */
  readonly onRetry?: (failure: PaymentsApiError, waitMs: number) => void
}

export interface CallOptions {
  /** Ends the call: it rejects with the reason of the signal. */
  readonly signal?: AbortSignal | undefined
}

export interface Call {
  readonly method: 'GET' | 'POST' | 'PATCH'
  readonly path: string
  readonly query?: Readonly<Record<string, string | number | null | undefined>>
  readonly body?: object
  /** Of every POST: a repetition with the same key is done once. */
  readonly idempotencyKey?: string
}

/** Answers with the `data` of the envelope. */
export type Transport = (call: Call, options?: CallOptions) => Promise<unknown>

const BACK_OFF = { firstMs: 500, mostMs: 30_000 }
/** A service that asks for a longer wait ends the call, and the failure says how long to wait. */
const MAX_WAIT_MS = 5 * 60_000

const DEFAULTS = {
  sleep: (ms: number, signal: AbortSignal) => wait(ms, undefined, { signal }),
  atOnce: 4,
  timeoutMs: 30_000,
  retries: 6,
}

/** @throws {PaymentsApiError} `key_mismatch`, before anything is sent */
export function createTransport(options: TransportOptions): Transport {
  const { environment, baseUrl, apiKey, clock, random, onRetry } = options
  const { sleep, atOnce, timeoutMs, retries } = { ...DEFAULTS, ...options }
  assertKeyOf(environment, apiKey)
  const limit = pLimit(atOnce)
  const never = new AbortController().signal
  const judge = createJudge(options)
  /** The service asked for no calls until then. */
  let closedUntil = 0
  /** What a body was read into, for the next one: a backfill reads thousands, and each would wait to be collected. */
  let spare: Buffer = Buffer.alloc(0)

  async function attempt(call: Call, signal: AbortSignal): Promise<unknown> {
    // A clock that is set back makes no wait longer.
    const closedFor = Math.min(closedUntil - clock(), MAX_WAIT_MS)
    if (closedFor > 0) await sleep(closedFor, signal)
    try {
      // Calls at once each have memory of their own.
      const own = spare
      spare = Buffer.alloc(0)
      const answer = await send(call, own, signal)
      try {
        return judge(call, answer)
      } finally {
        spare = Buffer.from((answer.body ?? own).buffer)
      }
    } catch (error) {
      if (error instanceof PaymentsApiError) closeFor((error.retryAfterSeconds ?? 0) * 1000)
      throw error
    }
  }

  /** Every call waits, not only the one that was asked to. */
  function closeFor(ms: number): void {
    if (ms <= MAX_WAIT_MS) closedUntil = Math.max(closedUntil, clock() + ms)
  }

  async function send(call: Call, memory: Buffer, signal: AbortSignal): Promise<Answer> {
    // By hand: on Node 22, each `AbortSignal.any` keeps two kilobytes while one of its signals lives.
    const ending = new AbortController()
    const end = () => ending.abort()
    const timer = setTimeout(end, timeoutMs)
    signal.addEventListener('abort', end, { once: true })
    try {
      signal.throwIfAborted()
      return await exchange(addressOf(baseUrl, call), {
        method: call.method,
        signal: ending.signal,
        headers: {
          [KEY_HEADER]: apiKey,
          accept: 'application/json',
          'user-agent': 'Latchkey',
          ...(call.body && { 'content-type': 'application/json' }),
          ...(call.idempotencyKey !== undefined && { 'idempotency-key': call.idempotencyKey }),
        },
        body: call.body && JSON.stringify(call.body),
        memory,
      })
    } catch (error) {
      signal.throwIfAborted()
      if (ending.signal.aborted) {
        const message = `The payments API did not answer ${named(call)} within ${timeoutMs / 1000} s. Try again later.`
        throw new PaymentsApiError('timed_out', message)
      }
      const reason = networkReason(error)
      const place = `provider.${environment}.baseUrl`
      const message = `The payments API can't be reached (${reason}). Check ${place} and the network, or try again later.`
      throw new PaymentsApiError('unreachable', message)
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
    }
  }

  async function waitAfter(failure: PaymentsApiError, failures: number, signal: AbortSignal) {
    const { retryAfterSeconds } = failure
    const asked = (retryAfterSeconds ?? 0) * 1000
    if (!failure.isRetryable || asked > MAX_WAIT_MS) return false
    const bound = Math.min(BACK_OFF.mostMs, BACK_OFF.firstMs * 2 ** (failures - 1))
    // At least half the bound, so that a failed call is never repeated at once.
    const waitMs = Math.round(asked + (bound * (1 + random())) / 2)
    if (failure.kind === 'rate_limited') closeFor(waitMs)
    onRetry?.(failure, waitMs)
    await sleep(waitMs, signal)
    return true
  }

  return async (call, { signal = never } = {}) => {
    signal.throwIfAborted()
    const done = limit(() =>
      pRetry(() => attempt(call, signal), {
        retries,
        signal,
        // `shouldRetry` waits.
        minTimeout: 0,
        shouldRetry: async ({ error, attemptNumber }) =>
          error instanceof PaymentsApiError && (await waitAfter(error, attemptNumber, signal)),
      }),
    )
    return unlessAborted(done, signal)
  }
}

/** A call that waits for its turn ends at once, too. */
function unlessAborted<T>(done: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const end = () => reject(signal.reason)
    signal.addEventListener('abort', end, { once: true })
    done.then(resolve, reject).finally(() => signal.removeEventListener('abort', end))
  })
}

// What is sent

/** Such a key passes unchanged in a header: an error about another one would show it. */
const USABLE_KEY = /^sk_(live|sandbox)_[!-~]+$/

function assertKeyOf(environment: Environment, apiKey: string): void {
  if (USABLE_KEY.exec(apiKey)?.[1] === environment) return
  const message = `The payments API's key for ${environment} is not a ${environment} key, which begins with sk_${environment}_. Correct provider.${environment}.apiKey.`
  throw new PaymentsApiError('key_mismatch', message)
}

function addressOf(baseUrl: string, { path, query = {} }: Call): string {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined)
  const search = new URLSearchParams(given.map(([name, value]): [string, string] => [name, String(value)]))
  return `${baseUrl.replace(/\/+$/, '')}${path}${search.size === 0 ? '' : `?${search}`}`
}

/** Without the query, which may hold an email address. */
const named = ({ method, path }: Call): string => `${method} ${path}`

// What came back

/** Only the system's short code: messages and causes may hold what was sent. */
function networkReason(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown reason'
}

/** Answers with the data of a success. @throws {PaymentsApiError} what the answer says */
function createJudge({ environment, apiKey, clock }: TransportOptions) {
  const key = `provider.${environment}.apiKey`
  const baseUrl = `provider.${environment}.baseUrl`

  return (call: Call, { status, headers, body }: Answer): unknown => {
    const json = body === null ? null : parseJsonBody(body)
    const envelope = json?.ok ? json.object : {}
    const isSuccess = status >= 200 && status < 300
    const success = successSchema.safeParse(envelope)
    if (isSuccess && success.success) return success.data.data

    const refusal = refusalIn(envelope, apiKey)
    const answered = [status, refusal?.code].filter(Boolean).join(' ')
    const said = refusal?.message ? ` It says: ${refusal.message}` : ''
    const fail = (kind: FailureKind, message: string, more: FailureDetails = {}) =>
      new PaymentsApiError(kind, message, {
        ...{ status, serviceCode: refusal?.code ?? null, issues: refusal?.issues ?? [] },
        ...more,
      })

    if (status >= 300 && status < 400) {
      const message = `The payments API answered ${named(call)} with a redirect (${status}), which is not followed: the key is for this address alone. Check ${baseUrl}.`
      throw fail('redirected', message)
    }
    const isLimited = status === 429 || refusal?.code === 'RATE_LIMITED'
    if (isLimited || status >= 500) {
      const retryAfterSeconds = secondsToWait(headers['retry-after'], clock())
      const when =
        retryAfterSeconds === null ? 'Try again later.' : `Try again in ${retryAfterSeconds} seconds.`
      const what = isLimited ? 'limits how often it may be called' : 'fails'
      throw fail(
        isLimited ? 'rate_limited' : 'server_error',
        `The payments API ${what}: it answered ${named(call)} with ${answered}. ${when}`,
        { retryAfterSeconds },
      )
    }
    if (body === null) {
      const message = `The payments API's answer to ${named(call)} is over ${MAX_BODY_BYTES / 1024 / 1024} MiB. Ask for fewer records at once.`
      throw fail('answer_too_large', message)
    }
    // A refusal may come with the status of a success.
    if (refusal === null) {
      const message = `The answer to ${named(call)} (${status}) is not the payments API's: ${json?.ok === false ? WHY_UNREADABLE[json.reason] : 'it has no envelope'}. Check ${baseUrl}.`
      throw fail('answer_invalid', message)
    }
    const refusing = `The payments API refused ${named(call)} (${answered}).${said}`
    const kind = kindOf(call, status, refusal.code)
    const todo: Partial<Record<FailureKind, string>> = {
      key_refused: ` Check ${key}, and what the key may do.`,
      in_flight: ' Try again later.',
      cursor_refused: ' Read the list again from its beginning.',
    }
    throw fail(kind, `${refusing}${todo[kind] ?? ''}`)
  }
}

const WHY_UNREADABLE = {
  not_utf8: 'it is not UTF-8 text',
  not_json: 'it is not JSON',
  not_an_object: 'it has no envelope',
  nested_too_deep: 'it is nested too deep',
  duplicate_keys: 'a key appears twice in it',
} as const

const IN_FLIGHT: readonly string[] = ['IDEMPOTENCY_KEY_CONFLICT', 'IDEMPOTENCY_REQUEST_IN_PROGRESS']

function kindOf({ query }: Call, status: number, code: string): FailureKind {
  if (status === 401 || status === 403) return 'key_refused'
  if (status === 409 && IN_FLIGHT.includes(code)) return 'in_flight'
  if (query?.cursor) return 'cursor_refused'
  return status === 404 ? 'not_found' : 'refused'
}

interface Refusal {
  readonly code: string
  readonly message: string
  readonly issues: readonly Issue[]
}

/** Null: it is no envelope of a failure. */
function refusalIn(envelope: JsonObject, apiKey: string): Refusal | null {
  const { data } = failureSchema.safeParse(envelope)
  if (data === undefined) return null
  const { code, message } = typeof data.error === 'string' ? { code: data.error, ...data } : data.error
  const { data: details } = fieldErrorsSchema.safeParse(data.data)
  const shown = (text: string) => withoutSecrets(text, apiKey)
  return {
    code: shown(code),
    message: shown(data.message ?? message ?? ''),
    issues: (details?.fieldErrors ?? []).map((one) => ({
      path: shown(one.field),
      message: shown(one.message),
    })),
  }
}

const MAX_SHOWN = 300

/** The service's own words, fit for an error: a service may repeat what was sent. */
function withoutSecrets(text: string, apiKey: string): string {
  return text
    .replaceAll(apiKey, 'sk_…')
    .replaceAll(/\b(sk_(?:live|sandbox)_|whsec_)[^\s"']+/g, '$1…')
    .replaceAll(/\p{Cc}+/gu, ' ')
    .slice(0, MAX_SHOWN)
}

/** Of a `Retry-After`, in seconds or as a date (RFC 9110, 10.2.3); null if there is none, or none that can be read. */
function secondsToWait(header: string | undefined, now: number): number | null {
  if (header === undefined) return null
  if (/^\d{1,9}$/.test(header)) return Number(header)
  const at = Date.parse(header)
  return Number.isNaN(at) ? null : Math.max(0, Math.ceil((at - now) / 1000))
}

/** What is wrong with an answer's data, without any of its values. */
export function issuesOf({ issues }: z.ZodError): Issue[] {
  return issues.map(({ path, message }) => ({ path: z.core.toDotPath(path), message }))
}
