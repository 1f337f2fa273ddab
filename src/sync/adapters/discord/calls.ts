import { DefaultRestOptions, REST, RequestMethod, type ResponseLike } from '@discordjs/rest'
import type { z } from 'zod'
import type { Reach } from '../../outages.js'
import type { RetryableError } from '../../platform-errors.js'
import { bucketOf } from './bucket.js'
import { createExchange, notDiscord } from './exchange.js'
import { failureOf } from './failure-of.js'
import { createPauses } from './pauses.js'

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
    makeRequest: createExchange({ pauses, clock }),
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
