import { createHash } from 'node:crypto'
import { RateLimiterMemory } from 'rate-limiter-flexible'

/** What one address may get wrong: enough for a merchant who is trying out a secret by hand. */
const FAILURES_PER_WINDOW = 30
const WINDOW_SECONDS = 60

/** Addresses share this many counters, which bounds the memory; who shares one is limited together. */
const COUNTERS = 16_384

/** Where an address stands after one more failure. */
export interface FailureCount {
  readonly limited: boolean
  /** True for the one failure that went over the limit, so that it can be said once. */
  readonly justLimited: boolean
  readonly retryAfterSeconds: number
}

/** Counts failed signatures by the sender's address. It never sees an authentic delivery. */
export type FailureLimit = (address: string) => Promise<FailureCount>

/** Limits what an address may get wrong, by default 30 failures in 60 seconds. */
export function createFailureLimit({
  failures = FAILURES_PER_WINDOW,
  windowSeconds = WINDOW_SECONDS,
}: {
  failures?: number
  windowSeconds?: number
} = {}): FailureLimit {
  const limiter = new RateLimiterMemory({ points: failures, duration: windowSeconds })
  return async (address) => {
    const { consumedPoints, msBeforeNext } = await limiter.penalty(counterOf(address))
    return {
      limited: consumedPoints > failures,
      justLimited: consumedPoints === failures + 1,
      retryAfterSeconds: Math.ceil(msBeforeNext / 1000),
    }
  }
}

function counterOf(address: string): number {
  return createHash('sha256').update(address).digest().readUInt32BE() % COUNTERS
}
