import {
  DefaultRestOptions,
  DiscordAPIError,
  HTTPError,
  RateLimitError,
  REST,
  type RESTOptions,
  RequestMethod,
  type ResponseLike,
} from '@discordjs/rest'
import type { RESTJSONErrorCodes } from 'discord-api-types/v10'
import type { z } from 'zod'
import type { BotDeps } from '../context.js'
import { HeldBackError } from '../outgoing.js'
import { RetryableError, rateLimited, tokenRejected } from '../platform.js'

/** Discord understood a call and refused it. Only the adapter sees it, and knows what it means for each call. */
export class Refusal extends Error {
  readonly status: number
  /** Discord's own code, such as 50013. */
  readonly code: number

  /** @param message Discord's own words, without the token */
  constructor(status: number, code: number, message: string) {
    super(message)
    this.name = 'Refusal'
    this.status = status
    this.code = code
  }
}

export function isRefusal(error: unknown, ...codes: readonly RESTJSONErrorCodes[]): error is Refusal {
  return error instanceof Refusal && codes.some((code) => code === error.code)
}

/** Of Discord's own words, for terminals and logs. */
const LONGEST_WORDS = 300

/** Far longer than Discord normally needs, and short enough to notice an outage. */
const TIMEOUT_MS = 15_000

/** The address is without the version. */
export interface CallsDeps extends BotDeps {
  readonly timeoutMs?: number
}

type Route = `/${string}`

/**
 * Makes one call, at most once; none during a rate limit.
 * @throws {RetryableError} {ActionRequiredError} for a problem of the whole bot; `Refusal`; `HeldBackError` for a change.
 * None holds the token.
 */
export interface Calls {
  read<Shape>(route: Route, shape: z.ZodType<Shape>, query?: Readonly<Record<string, string>>): Promise<Shape>
  /** @param reason for the guild's audit log */
  change(method: RequestMethod.Put | RequestMethod.Delete, route: Route, reason: string): Promise<void>
}

/** The library waits out limits up to this long. Sync handles longer ones, to work on other targets meanwhile. */
const SHORT_WAIT_MS = 2_000
/** A listing that starts again would meet the same limits, and never finish in a large guild. */
const LISTING_WAIT_MS = 30_000
const LISTING_ROUTE = '/guilds/:id/members'
/** The wait after a 429 without one: it comes from the network in front of Discord, which blocks our address. */
const DEFAULT_WAIT_MS = 60_000
/** No limit of these calls is longer. A longer wait is cut to this, and then one call tests the limit. */
const LONGEST_WAIT_MS = 86_400_000

/** All calls to Discord share one instance, and with it the library's queues. */
export function createCalls(deps: CallsDeps): Calls {
  const { botToken, apiUrl, clock, reach, outgoing, timeoutMs = TIMEOUT_MS } = deps
  const rest = new REST({
    version: '10',
    api: apiUrl?.replace(/\/+$/, '') ?? DefaultRestOptions.api,
    timeout: timeoutMs,
    retries: 0,
    rejectOnRateLimit: ({ retryAfter, route }) =>
      !(retryAfter > 0 && retryAfter <= (route === LISTING_ROUTE ? LISTING_WAIT_MS : SHORT_WAIT_MS)),
    // Called when the library's queues and waits are over.
    makeRequest: (url, init) =>
      init.method === RequestMethod.Get
        ? requestWhole(url, init)
        : outgoing.send((signal) => requestWhole(url, { ...init, signal }), init.signal),
    // No timers: they would outlive this instance, and there are few routes to remember.
    hashSweepInterval: 0,
    handlerSweepInterval: 0,
  })

  function failed(code: 'discord_unreachable' | 'discord_failed', message: string): RetryableError {
    reach?.failed(message)
    return new RetryableError(code, message)
  }

  function notDiscord(status: number): RetryableError {
    const message = `${status} is not an answer of Discord's API: check the network and sync.discord.apiUrl.`
    return failed('discord_unreachable', message)
  }

  /** Translates a failed call. The library's own errors hold the request and the token, so none is passed on. */
  function failureOf(error: unknown): Error {
    if (error instanceof HeldBackError) return error
    if (error instanceof RateLimitError) return limited(error, clock())
    if (error instanceof HTTPError)
      return failed('discord_failed', `Discord failed with status ${error.status}.`)
    if (!(error instanceof DiscordAPIError)) {
      const hasTimedOut = error instanceof Error && error.name === 'AbortError'
      const problem = hasTimedOut ? 'did not answer in time' : 'could not be reached'
      return failed('discord_unreachable', `Discord ${problem}.`)
    }
    if (typeof error.code !== 'number') return notDiscord(error.status)
    reach?.answered()
    if (error.status === 401) return tokenRejected('discord')
    const words = error.message.replaceAll(botToken, '[token]').replace(/\p{Cc}+/gu, ' ')
    return new Refusal(error.status, error.code, words.slice(0, LONGEST_WORDS))
  }

  async function call(request: Parameters<REST['queueRequest']>[0]): Promise<ResponseLike> {
    // After a 401 the library forgets the token, and would refuse all calls even if the token were valid again.
    rest.setToken(botToken)
    try {
      return await rest.queueRequest(request)
    } catch (error) {
      throw failureOf(error)
    }
  }

  return {
    async read(route, shape, query = {}) {
      const request = { method: RequestMethod.Get, fullRoute: route, query: new URLSearchParams(query) }
      const response = await call(request)
      const answer = shape.safeParse(await response.json().catch(() => undefined))
      if (!answer.success) throw notDiscord(response.status)
      reach?.answered()
      return answer.data
    },
    async change(method, route, reason) {
      const { status } = await call({ method, fullRoute: route, reason })
      if (status !== 204) throw notDiscord(status)
      reach?.answered()
    },
  }
}

/** As the library does it, but the time limit also covers reading the body. Follows no redirects. */
async function requestWhole(...[url, init]: Parameters<RESTOptions['makeRequest']>): Promise<ResponseLike> {
  const response = await DefaultRestOptions.makeRequest(url, init)
  const body = await response.text()
  return new Response(body === '' ? null : body, {
    status: response.status,
    headers: new Headers([...response.headers]),
  })
}

/** The limit of a route in a guild, or of all calls. */
function limited({ global, retryAfter }: RateLimitError, now: number): RetryableError {
  const hasWait = retryAfter > 0
  return rateLimited('discord', {
    scope: global || !hasWait ? 'platform' : 'target',
    notBefore: now + Math.min(hasWait ? Math.ceil(retryAfter) : DEFAULT_WAIT_MS, LONGEST_WAIT_MS),
    isRefused: true,
  })
}
