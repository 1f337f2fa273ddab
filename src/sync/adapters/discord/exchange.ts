import { DefaultRestOptions, type RESTOptions, type ResponseLike } from '@discordjs/rest'
import { z } from 'zod'
import { bucketOf } from './bucket.js'
import type { Pauses } from './pauses.js'

/** Where a 429 tells no wait: it comes from the network before Discord's API, which blocks the address. */
const DEFAULT_WAIT_SECONDS = 60
/** No limit of the calls made here is longer. Of a longer wait no more is taken at once: then one call asks again. */
const LONGEST_WAIT_SECONDS = 86_400

const refusedSchema = z.object({ code: z.int(), message: z.string() })
const limitedSchema = z.object({ retry_after: z.number().nonnegative(), global: z.boolean().default(false) })

export interface ExchangeDeps {
  readonly pauses: Pauses
  /** Epoch milliseconds. */
  readonly clock: () => number
}

/**
 * Sends a request as the library does, unless a pause stands, and hands back nothing but an answer of Discord's API.
 * Pauses begin here, before the library lets go the next call that waits behind this one. The body is read within the
 * library's time limit too. Redirects are not followed.
 * @throws {RetryableError} there was no answer, none of Discord's, or a 429
 */
export function createExchange({ pauses, clock }: ExchangeDeps): RESTOptions['makeRequest'] {
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

export function notDiscord(status: number): string {
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
