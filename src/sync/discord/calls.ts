import {
  DefaultRestOptions,
  DiscordAPIError,
  RateLimitError,
  REST,
  type RESTOptions,
  RequestMethod,
  type ResponseLike,
} from '@discordjs/rest'
import type { RESTJSONErrorCodes } from 'discord-api-types/v10'
import { z } from 'zod'
import { type Wait, waitAsOf } from '../limits.js'
import type { Reach } from '../outages.js'
import { ActionRequiredError, RetryableError } from '../platform.js'

/**
 * The calls that share a limit, as far as it can be told before Discord does: those of one route in one guild. Takes a
 * route or a whole address.
 */
function bucketOf(address: string): string {
  const path = /\/(guilds|users)\/[^?]*/.exec(address)?.[0] ?? address
  return path.replace(/(?<=\/(members|roles)\/)\d+/g, ':id')
}

/** Discord understood a call and said no. Stays within the adapter, which knows what it means for each call. */
export class Refusal extends Error {
  /** Of HTTP. */
  readonly status: number
  /** Discord's own, such as 50013. */
  readonly code: number

  /** @param message Discord's own words, without the token */
  constructor(status: number, code: number, message: string) {
    super(message)
    this.name = 'Refusal'
    this.status = status
    this.code = code
  }
}

/** Whether Discord refused for one of these reasons. */
export function isRefusal(error: unknown, ...codes: readonly RESTJSONErrorCodes[]): error is Refusal {
  return error instanceof Refusal && codes.some((code) => code === error.code)
}

const FIRST_PAUSE_MS = 1_000
/** Long enough to leave a platform alone that is down, short enough to notice soon that it is up again. */
const LONGEST_PAUSE_MS = 15_000

/**
 * Remembers before when no call may be made: of one bucket or, where `bucket` is null, any at all. No pause lasts
 * longer for a clock that is set back.
 */
export interface Pauses {
  /** @throws {RetryableError} while a pause is in force; called immediately before every call */
  check(bucket: string | null): void
  /** Discord limits calls. @param notBefore epoch milliseconds */
  limited(bucket: string | null, notBefore: number): RetryableError
  /**
   * A call got no answer of Discord's. One such failure may be that call's own; more in a row mean that Discord is
   * down, which is then left alone for a second, and twice as long each time.
   */
  failed(code: string, message: string): RetryableError
  /** A call got an answer, whatever it said. */
  answered(): void
}

interface Pause extends Wait {
  readonly code: string
  readonly message: string
}

/** @param clock epoch milliseconds */
export function createPauses(clock: () => number, reach?: Reach): Pauses {
  const pauses = new Map<string | null, Pause>()
  let failuresInRow = 0

  function inForce(bucket: string | null): Pause | null {
    const begun = pauses.get(bucket)
    if (begun === undefined) return null
    const now = clock()
    const pause = waitAsOf(begun, now)
    if (now >= pause.until) {
      pauses.delete(bucket)
      return null
    }
    pauses.set(bucket, pause)
    return pause
  }

  /** A pause never becomes shorter. */
  function begin(bucket: string | null, pause: Pause, isRefused: boolean): RetryableError {
    const earlier = inForce(bucket)
    const longest = earlier !== null && earlier.until > pause.until ? earlier : pause
    pauses.set(bucket, longest)
    return paused(bucket, longest, isRefused)
  }

  return {
    check(bucket) {
      for (const held of [null, bucket]) {
        const pause = inForce(held)
        if (pause) throw paused(held, pause, true)
      }
    },
    limited: (bucket, notBefore) =>
      begin(
        bucket,
        {
          code: 'rate_limited',
          message: 'Discord limits the rate of calls.',
          since: clock(),
          until: notBefore,
        },
        true,
      ),
    failed(code, message) {
      reach?.failed(message)
      const pause = inForce(null)
      // The call was under way when the pause began: the same failure, seen once more.
      if (pause) return paused(null, pause, false)
      failuresInRow += 1
      if (failuresInRow === 1) return new RetryableError(code, message)
      const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** (failuresInRow - 2), LONGEST_PAUSE_MS)
      const since = clock()
      return begin(null, { code, message, since, until: since + pauseMs }, false)
    },
    answered() {
      reach?.answered()
      failuresInRow = 0
    },
  }
}

/** @param isRefused whether the call that meets the pause has certainly not been made */
function paused(bucket: string | null, { code, message, until }: Pause, isRefused: boolean): RetryableError {
  const scope = bucket === null ? 'platform' : 'target'
  return new RetryableError(code, message, { scope, notBefore: until, isRefused })
}

const LONGEST_WORDS = 300

export interface FailureContext {
  readonly pauses: Pauses
  /** Of the call: `bucketOf`. */
  readonly bucket: string
  /** Epoch milliseconds. */
  readonly now: number
  /** Leaves the token out of a text. */
  readonly withoutToken: (text: string) => string
}

/** What a failed call means, made anew: the library's own errors hold the request. Any other error stays as it is. */
export function failureOf(error: unknown, { pauses, bucket, now, withoutToken }: FailureContext): unknown {
  if (error instanceof RateLimitError) {
    return pauses.limited(error.global ? null : bucket, now + Math.ceil(error.retryAfter))
  }
  if (!(error instanceof DiscordAPIError)) return error
  pauses.answered()
  if (error.status === 401) {
    return new ActionRequiredError(
      'token_rejected',
      'Discord does not accept the bot token: put a valid one in sync.discord.botToken.',
      { scope: 'platform' },
    )
  }
  return new Refusal(error.status, Number(error.code), plainWords(withoutToken(error.message)))
}

/** One short line: it goes to terminals and logs. */
function plainWords(text: string): string {
  return text.replace(/\p{Cc}+/gu, ' ').slice(0, LONGEST_WORDS)
}

/** Where a 429 tells no wait: it comes from the network before Discord's API, which blocks the address. */
const DEFAULT_WAIT_SECONDS = 60
/** No limit of the calls made here is longer. Of a longer wait no more is taken at once: then one call asks again. */
const LONGEST_WAIT_SECONDS = 86_400

const refusedSchema = z.object({ code: z.int(), message: z.string() })
const limitedSchema = z.object({ retry_after: z.number().nonnegative(), global: z.boolean().default(false) })

/**
 * Sends a request as the library does, unless a pause is in force, and hands back nothing but an answer of Discord's API.
 * Pauses begin here, before the library lets go the next call that waits behind this one. The body is read within the
 * library's time limit too. Redirects are not followed.
 * @throws {RetryableError} there was no answer, none of Discord's, or a 429
 */
function createExchange(pauses: Pauses, clock: () => number): RESTOptions['makeRequest'] {
  return async (url, init) => {
    const bucket = bucketOf(url)
    pauses.check(bucket)
    const answer = await send(url, init)
    if (answer === null) {
      const hasTimedOut = init.signal?.aborted === true
      throw pauses.failed(
        'discord_unreachable',
        hasTimedOut ? 'Discord did not answer in time.' : 'Discord could not be reached.',
      )
    }
    const { status, headers, text } = answer
    if (status === 429) {
      const { seconds, isOfAll } = limitOf(answer)
      throw pauses.limited(isOfAll ? null : bucket, clock() + Math.ceil(seconds * 1_000))
    }
    if (status >= 500) throw pauses.failed('discord_failed', `Discord failed with status ${status}.`)
    const resetAfter = waitSeconds(headers.get('x-ratelimit-reset-after')) ?? 0
    if (headers.get('x-ratelimit-remaining') === '0') {
      pauses.limited(bucket, clock() + Math.ceil(resetAfter * 1_000))
    }
    // The library would believe any wait, lose what the first answer of a bucket says, and wait for a clock set back.
    headers.delete('x-ratelimit-remaining')
    const isDone = status >= 200 && status <= 204
    const isRefused = status >= 400 && refusedSchema.safeParse(parsed(text)).success
    if (!isDone && !isRefused) throw pauses.failed('discord_unreachable', notDiscord(status))
    return new Response(text === '' ? null : text, { status, headers })
  }
}

function notDiscord(status: number): string {
  return `What answered with status ${status} is not Discord's API: see the network, and sync.discord.apiUrl.`
}

interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

/** Null where there is no answer. What was thrown then may hold the request, and with it the token. */
async function send(...[url, init]: Parameters<RESTOptions['makeRequest']>): Promise<Answer | null> {
  try {
    const response: ResponseLike = await DefaultRestOptions.makeRequest(url, init)
    const text = await response.text()
    return { status: response.status, headers: new Headers([...response.headers]), text }
  } catch {
    return null
  }
}

/** The body tells fractions of seconds, the header whole ones at most. */
function limitOf({ headers, text }: Answer): { readonly seconds: number; readonly isOfAll: boolean } {
  const body = limitedSchema.safeParse(parsed(text))
  const told = body.success ? body.data.retry_after : headers.get('retry-after')
  return {
    seconds: waitSeconds(told) ?? DEFAULT_WAIT_SECONDS,
    isOfAll: !body.success || body.data.global || headers.has('x-ratelimit-global'),
  }
}

/** Null: it tells none. */
function waitSeconds(told: string | number | null): number | null {
  const seconds = told === null ? Number.NaN : Number(told)
  return seconds >= 0 ? Math.min(seconds, LONGEST_WAIT_SECONDS) : null
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Far above what Discord takes to answer, and short enough to find out that it doesn't. */
const TIMEOUT_MS = 15_000
/** In which the library makes fifty calls at most. */
const LIBRARY_WINDOW_MS = 1_000

export interface CallsDeps {
  readonly botToken: string
  /** Without the version; null: Discord's own. */
  readonly apiUrl: string | null
  /** Epoch milliseconds. */
  readonly clock: () => number
  readonly reach?: Reach
  readonly timeoutMs?: number
}

type Route = `/${string}`

/**
 * Makes one call, at most once; where a limit or a pause forbids it, none.
 * @throws {RetryableError} {ActionRequiredError} for what concerns the bot as a whole; `Refusal`. None holds the token.
 */
export interface Calls {
  read<Shape>(route: Route, shape: z.ZodType<Shape>, query?: Readonly<Record<string, string>>): Promise<Shape>
  /** @param reason for the guild's audit log */
  change(method: RequestMethod.Put | RequestMethod.Delete, route: Route, reason: string): Promise<void>
}

/** All calls to Discord go through one of these, so that they share its limits. */
export function createCalls({ botToken, apiUrl, clock, reach, timeoutMs = TIMEOUT_MS }: CallsDeps): Calls {
  const pauses = createPauses(clock, reach)
  const withoutToken = (text: string) => text.replaceAll(botToken, '[token]')
  const rest = new REST({
    version: '10',
    api: apiUrl?.replace(/\/+$/, '') ?? DefaultRestOptions.api,
    timeout: timeoutMs,
    retries: 0,
    // Whoever calls must learn of every wait, also of one that the library would sit out.
    rejectOnRateLimit: () => true,
    makeRequest: createExchange(pauses, clock),
    // Nothing is left running when this is let go; there are few routes to remember.
    hashSweepInterval: 0,
    handlerSweepInterval: 0,
  })

  async function call<Answer>(
    request: Parameters<REST['queueRequest']>[0],
    take: (response: ResponseLike) => Promise<Answer>,
  ): Promise<Answer> {
    const bucket = bucketOf(request.fullRoute)
    pauses.check(bucket)
    // After a 401 the library forgets the token, and would refuse calls even if it is accepted again.
    rest.setToken(botToken)
    // It would wait for a clock that was set back since its window began.
    if (rest.globalReset > clock() + LIBRARY_WINDOW_MS) rest.globalReset = -1
    try {
      const answer = await take(await rest.queueRequest(request))
      pauses.answered()
      return answer
    } catch (error) {
      throw failureOf(error, { pauses, bucket, now: clock(), withoutToken })
    }
  }

  function unexpected(status: number): RetryableError {
    return pauses.failed('discord_unreachable', notDiscord(status))
  }

  return {
    read: (route, shape, query = {}) =>
      call(
        { method: RequestMethod.Get, fullRoute: route, query: new URLSearchParams(query) },
        async (response) => {
          const answer = shape.safeParse(await response.json().catch(() => undefined))
          if (!answer.success) throw unexpected(response.status)
          return answer.data
        },
      ),
    change: (method, route, reason) =>
      call({ method, fullRoute: route, reason }, async ({ status }) => {
        if (status !== 204) throw unexpected(status)
      }),
  }
}
