import type { DiscordCall } from '../platforms/discord-calls.js'
import type { DiscordState, LocalDiscord } from '../platforms/discord-server.js'
import { type FollowedState, stateOf } from './followed.js'
import type { ServedDaemon } from './served.js'

/** What each answer of a platform that limits all calls asks for. */
const RETRY_AFTER_SECONDS = 1.5
/** Whoever is told to wait may have sent a call before, which comes late on a machine that has other work too. */
const ON_ITS_WAY_MS = 500
/** Each counts towards the 10,000 in ten minutes that Discord allows. */
const INVALID: readonly (number | null)[] = [401, 403, 429]

const LIMITS_ALL: DiscordState = {
  answer: {
    status: 429,
    headers: {
      'content-type': 'application/json',
      'retry-after': String(Math.ceil(RETRY_AFTER_SECONDS)),
      'x-ratelimit-global': 'true',
      'x-ratelimit-scope': 'global',
    },
    body: JSON.stringify({
      message: 'You are being rate limited.',
      retry_after: RETRY_AFTER_SECONDS,
      global: true,
    }),
  },
}

/** One way in which a platform is down, and by what one sees that the daemon has met it. */
export interface Outage {
  readonly state: DiscordState
  readonly isMet: (calls: readonly DiscordCall[], state: FollowedState) => boolean
}

/** One after another: what hangs is cut off as soon as nobody listens any more. */
export const OUTAGES: readonly Outage[] = [
  { state: { status: 503 }, isMet: (calls) => calls.at(-1)?.status === 503 },
  { state: 'hang', isMet: (calls) => calls.at(-1)?.status === null },
  { state: 'refuse', isMet: (_, { platforms }) => platforms[0]?.reason?.code === 'discord_unreachable' },
  { state: LIMITS_ALL, isMet: (calls) => calls.at(-1)?.status === 429 },
]

export async function hasMet(
  { isMet }: Outage,
  discord: LocalDiscord,
  daemon: ServedDaemon,
): Promise<boolean> {
  return isMet(discord.calls, await stateOf(daemon))
}

/** Those that came before a `retry_after` had passed, whoever told it. */
export function earlyCalls(
  calls: readonly DiscordCall[],
  duringLimits: readonly DiscordCall[],
): readonly DiscordCall[] {
  const limited = duringLimits.filter(({ status }) => status === 429)
  const isTooEarly = ({ at }: DiscordCall): boolean =>
    limited.some((told) => at > told.at + ON_ITS_WAY_MS && at < told.at + RETRY_AFTER_SECONDS * 1_000)
  const wasToldLongAgo = ({ at }: DiscordCall): boolean => {
    const told = calls.filter((one) => one.status === 429 && !one.isEarly && one.at <= at)
    return at > Math.max(0, ...told.map((one) => one.at)) + ON_ITS_WAY_MS
  }
  return calls.filter((call) => (call.isEarly && wasToldLongAgo(call)) || isTooEarly(call))
}

export function invalidCalls(calls: readonly DiscordCall[]): readonly DiscordCall[] {
  return calls.filter(({ status }) => INVALID.includes(status))
}

/** The accounts that the role was given to or taken from, one for every such call that Discord has done. */
export function changedAccounts(calls: readonly DiscordCall[]): readonly string[] {
  return calls
    .filter(({ route, status }) => route === 'role' && status === 204)
    .map(({ path }) => /\/members\/(\d+)\//.exec(path)?.[1] ?? '')
}
