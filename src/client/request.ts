/* Requests to the daemon: bounded in time, tried again where that can help, with failures that have stable codes. */

import type { components } from '../../openapi.js'

export type Environment = components['schemas']['Environment']

export interface Clock {
  /** Milliseconds since any fixed instant. */
  readonly monotonic: () => number
  /** Epoch milliseconds. */
  readonly wall: () => number
}

/** Beyond what two clocks differ by rounding. */
const JUMP_MS = 5

/**
 * Milliseconds since any fixed instant, at most JUMP_MS behind the time that has passed: the monotonic clock may stop
 * while the machine sleeps, and the wall clock then jumps ahead. If somebody sets it ahead, answers only look older.
 *
 * Both may stop, as in a virtual machine that is paused, and go on behind. Only somebody else can know that: `catchUp`
 * takes an instant that has passed for certain.
 */
function timerOf({ monotonic, wall }: Clock) {
  let slept = 0
  let offset = wall() - monotonic()
  const now = (): number => {
    const instant = monotonic()
    const ahead = wall() - instant - offset
    if (ahead > JUMP_MS) slept += ahead
    if (ahead > JUMP_MS || ahead < 0) offset += ahead
    return instant + slept
  }
  const catchUp = (passed: number): void => {
    slept += Math.max(0, passed - now())
  }
  return { now, catchUp }
}

/**
 * A question without an answer. `unavailable`: the daemon did not answer in time, or answered 5xx, or 429 to a right
 * key. Any other `code` is that of the daemon's answer, as docs/api.md lists them, or `invalid_options`,
 * `unexpected_answer`: something is wrong with the key, the address or the question, and asking again does not help.
 */
export class LatchkeyError extends Error {
  readonly code: string
  /** What Express answers if no handler takes the error: never what the daemon answered to this app. */
  readonly status: 500 | 503
  /** How long to wait before the next question; null: the daemon did not say. */
  readonly retryAfterMs: number | null

  constructor(
    code: string,
    message: string,
    options: { cause?: unknown; retryAfterMs?: number | null } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'LatchkeyError'
    this.code = code
    this.status = code === 'unavailable' ? 503 : 500
    this.retryAfterMs = options.retryAfterMs ?? null
  }
}

/** By name: an app may load the class twice, as an ES module and as CommonJS. */
export function isUnavailable(error: unknown): error is LatchkeyError {
  const isOurs = error instanceof Error && error.name === 'LatchkeyError'
  return isOurs && 'code' in error && error.code === 'unavailable'
}

export interface ApiOptions {
  /** Of the daemon: `http://127.0.0.1:4680`. */
  readonly url: string | undefined
  /** A key with the scope `read`. */
  readonly apiKey: string | undefined
  /** Left out: that of the first answer. Name it if the key is for both. */
  readonly environment?: Environment
  /** Milliseconds for one question with all its retries. Default 2000. */
  readonly timeout?: number
  /** How often a question is asked again after a network error, 429 or 5xx. Default 2. */
  readonly retries?: number
  readonly fetch?: typeof fetch
  readonly clock?: Clock
  /** From 0 up to 1, for jitter. */
  readonly random?: () => number
}

export type Api = ReturnType<typeof createApi>

const FIRST_WAIT_MS = 100
const LONGEST_WAIT_MS = 2_000
/** Timers take no more. */
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1
/** What a header can hold, without spaces. */
export const HEADER_TEXT = /^[\x21-\x7e\x80-\xff]+$/

const invalidOption = (what: string) => new LatchkeyError('invalid_options', `createClient: ${what}`)

/** `fetch` refuses other URLs, which would look as if the daemon could not be asked. */
function baseOf(url: string | undefined): string {
  if (url !== undefined && URL.canParse(url)) {
    const { protocol, href, origin, pathname } = new URL(url)
    // Then there are no credentials, and no query.
    if (/^https?:$/.test(protocol) && href === origin + pathname) return href.replace(/\/+$/, '')
  }
  throw invalidOption('`url` must be the URL of the daemon: http or https, without credentials or a query.')
}

/** @throws LatchkeyError `invalid_options` */
export function createApi({
  url,
  apiKey,
  environment,
  timeout = 2_000,
  retries = 2,
  fetch = globalThis.fetch,
  clock = { monotonic: () => performance.now(), wall: Date.now },
  random = Math.random,
}: ApiOptions) {
  const base = baseOf(url)
  const key = apiKey?.trim() ?? ''
  if (!HEADER_TEXT.test(key)) {
    throw invalidOption(
      '`apiKey` is empty, or can’t be sent in a header. Create one with `latchkey keys create`.',
    )
  }
  if (!Number.isInteger(timeout) || timeout < 1 || timeout > LONGEST_TIMEOUT_MS) {
    throw invalidOption(`\`timeout\` must be whole milliseconds, from 1 to ${LONGEST_TIMEOUT_MS}.`)
  }
  const timer = timerOf(clock)
  const { now } = timer
  let own = environment

  /** Full jitter: clients that failed together do not come back together. */
  const backoff = (attempt: number, first: number, longest: number): number =>
    random() * Math.min(longest, first * 2 ** attempt)

  async function send(path: string, init: RequestInit): Promise<Response> {
    const headers = { Authorization: `Bearer ${key}`, ...init.headers }
    const query = own === undefined ? '' : `?environment=${own}`
    const response = await fetch(`${base}${path}${query}`, { ...init, headers, redirect: 'manual' })
    if (response.ok) return response
    throw await failureOf(response, `${init.method ?? 'GET'} ${path}`)
  }

  return {
    ...timer,
    timeout,
    backoff,
    send,
    /**
     * Whether something that the daemon said is of the environment of this client. Unless one was named, the first says
     * which: a reload may have the daemon choose another one.
     */
    isOwn({ environment: said }: { readonly environment: Environment }): boolean {
      own ??= said
      return said === own
    },
    /**
     * Asks until there is an answer that `read` takes (null: it is outdated), the retries are used up, or the time.
     * @throws LatchkeyError
     */
    async ask<Answer>(
      path: string,
      init: RequestInit,
      read: (json: unknown, sentAt: number) => Answer | null,
    ): Promise<Answer> {
      const signal = AbortSignal.timeout(timeout)
      const endsAt = performance.now() + timeout
      for (let attempt = 0; ; attempt += 1) {
        const sentAt = now()
        const failure = await send(path, { ...init, signal })
          .then(async (response) => {
            const answer = readIn(await response.text(), (json) => read(json, sentAt))
            if (answer === undefined) throw unexpected(path, response.status)
            return answer === null ? unavailable('The answer was outdated when it came.') : { answer }
          })
          .catch((error: unknown) => failedBy(error, base, timeout))
        if (!(failure instanceof LatchkeyError)) return failure.answer
        const wait = backoff(attempt, FIRST_WAIT_MS, LONGEST_WAIT_MS) + (failure.retryAfterMs ?? 0)
        const mayRetry = isUnavailable(failure) && attempt < retries
        if (!mayRetry || performance.now() + wait >= endsAt) throw failure
        await sleep(wait, signal)
      }
    },
  }
}

const unavailable = (message: string, options: { cause?: unknown; retryAfterMs?: number | null } = {}) =>
  new LatchkeyError('unavailable', message, options)

/** Of a request without a usable answer. */
function failedBy(cause: unknown, base: string, timeout: number): LatchkeyError {
  if (cause instanceof LatchkeyError) return cause
  const isLate = cause instanceof Error && cause.name === 'TimeoutError'
  const why = isLate ? `did not answer within ${timeout} ms` : 'gave no usable answer'
  return unavailable(`The daemon at ${base} ${why}. Is it running, and can this app reach it?`, { cause })
}

/** Undefined: not of the form that `read` needs, or no JSON. */
function readIn<Answer>(text: string, read: (json: unknown) => Answer): Answer | undefined {
  try {
    return read(JSON.parse(text))
  } catch {
    return undefined
  }
}

/** Of an answer that is not Latchkey's; the status 0 is a redirect, where the runtime hides it. */
export function unexpected(request: string, status: number): LatchkeyError {
  const message = `${request} was answered ${status}, but not by Latchkey. Check \`url\`: does it lead to the daemon?`
  return new LatchkeyError('unexpected_answer', message)
}

const HINTS: Readonly<Record<number, string>> = {
  401: ' Check `apiKey`, or create a key with `latchkey keys create`.',
  403: ' Use a key with the scope `read` for this environment, and check `environment`.',
  404: ' Check `url`: does it lead to the daemon?',
}

async function failureOf(response: Response, request: string): Promise<LatchkeyError> {
  const { status } = response
  const problem = (await response.json().catch(() => null)) as Readonly<Record<string, unknown>> | null
  const code = typeof problem?.code === 'string' ? problem.code : 'unexpected_answer'
  const isOfDaemon = problem?.type === `urn:latchkey:problem:${code}`
  if (!isOfDaemon && status !== 429 && status < 500) return unexpected(request, status)
  const detail = typeof problem?.detail === 'string' ? ` ${problem.detail}` : ''
  const message = `${request} was answered ${status} ${code}.${detail}${HINTS[status] ?? ''}`
  const mayPass = status >= 500 || (status === 429 && code !== 'too_many_wrong_keys')
  if (!mayPass) return new LatchkeyError(code, message)
  const seconds = Number(response.headers.get('retry-after') ?? Number.NaN)
  return unavailable(message, { retryAfterMs: Number.isFinite(seconds) ? seconds * 1000 : null })
}

/**
 * Resolves early when the signal aborts.
 * @param isIdle whether the process may end meanwhile
 */
export function sleep(ms: number, signal: AbortSignal, { isIdle = false } = {}): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, signal.aborted ? 0 : ms)
    // Only Node's timers hold a process open.
    if (isIdle) timer.unref?.()
    signal.addEventListener('abort', end)
  })
}
