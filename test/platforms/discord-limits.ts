import { createHash } from 'node:crypto'
import type { DiscordRouteName, RoutedRequest } from './discord-routes.js'

export interface Bucket {
  readonly limit: number
  readonly perMs: number
}

/** A limit that begins with the next call which it concerns. */
export interface ForcedLimit {
  /** `network`: the address is blocked before the API, in no form of Discord's, and no wait is told. */
  readonly scope: 'user' | 'shared' | 'global' | 'network'
  /** How long it stands, which is what `retry_after` says. */
  readonly seconds: number
  /** The calls that it is about; left out: any. */
  readonly route?: DiscordRouteName
}

export interface LimitVerdict {
  /** Of every answer. */
  readonly headers: Readonly<Record<string, string>>
  /** The wait that a 429 tells, in milliseconds; null: the call goes through. */
  readonly waitMs: number | null
  readonly scope: ForcedLimit['scope']
  /** Whether a 429 had told to wait until later, and was known by then. */
  readonly isEarly: boolean
}

export interface DiscordLimits {
  force(limit: ForcedLimit): void
  /** Counts a call that came `at`. */
  count(routed: RoutedRequest, at: number): LimitVerdict
}

interface Window {
  left: number
  until: number
}

interface StandingLimit extends ForcedLimit {
  readonly key: string | null
  readonly since: number
  readonly until: number
}

/** Who was told to wait this short a time ago may have sent the call before. */
const ON_ITS_WAY_MS = 50

/** Fixed windows that begin with the first call in them, one for all calls and one for each route in each guild. */
export function createLimits(
  buckets: Readonly<Record<DiscordRouteName, Bucket>>,
  globalPerSecond: number,
): DiscordLimits {
  const windows = new Map<string, Window>()
  let forced: readonly ForcedLimit[] = []
  let standing: readonly StandingLimit[] = []

  /** The window of a key with one call taken off, which may leave -1. */
  function take(key: string, { limit, perMs }: Bucket, at: number): Window {
    const kept = windows.get(key)
    const window = kept !== undefined && at < kept.until ? kept : { left: limit, until: at + perMs }
    windows.set(key, window)
    window.left = Math.max(window.left, 0) - 1
    return window
  }

  function stand(limit: ForcedLimit, key: string, at: number): StandingLimit {
    const isOfAll = limit.scope === 'global' || limit.scope === 'network'
    const stood = { ...limit, key: isOfAll ? null : key, since: at, until: at + limit.seconds * 1_000 }
    standing = [...standing.filter(({ until }) => at < until), stood]
    return stood
  }

  return {
    force(limit) {
      forced = [...forced, limit]
    },
    count({ name, ids }, at) {
      const key = `${name}:${ids[0] ?? ''}`
      const earlier = standing.find((limit) => at < limit.until && (limit.key ?? key) === key)
      const next = forced.find(({ route = name }) => route === name)
      const inAll = take('global', { limit: globalPerSecond, perMs: 1_000 }, at)
      const inBucket = take(key, buckets[name], at)
      const headers = {
        'x-ratelimit-limit': String(buckets[name].limit),
        'x-ratelimit-remaining': String(Math.max(inBucket.left, 0)),
        'x-ratelimit-reset': String(inBucket.until / 1_000),
        'x-ratelimit-reset-after': String((inBucket.until - at) / 1_000),
        'x-ratelimit-bucket': createHash('md5').update(name).digest('hex'),
      }
      const verdict = (limit: StandingLimit | null): LimitVerdict => ({
        headers,
        waitMs: limit === null ? null : limit.until - at,
        scope: limit?.scope ?? 'user',
        isEarly: earlier !== undefined && at > earlier.since + ON_ITS_WAY_MS,
      })
      if (earlier) return verdict(earlier)
      if (next) {
        forced = forced.filter((limit) => limit !== next)
        return verdict(stand(next, key, at))
      }
      const secondsTo = (until: number) => (until - at) / 1_000
      if (inAll.left < 0) return verdict(stand({ scope: 'global', seconds: secondsTo(inAll.until) }, key, at))
      if (inBucket.left < 0)
        return verdict(stand({ scope: 'user', seconds: secondsTo(inBucket.until) }, key, at))
      return verdict(null)
    },
  }
}
