import { createHash } from 'node:crypto'

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

/** Counts what an address got wrong: failed signatures, wrong keys. It never sees what is authentic. */
export type FailureLimit = (address: string) => FailureCount

/** Limits what an address may get wrong, by default 30 failures in 60 seconds. */
export function createFailureLimit({
  failures = FAILURES_PER_WINDOW,
  windowSeconds = WINDOW_SECONDS,
}: {
  failures?: number
  windowSeconds?: number
} = {}): FailureLimit {
  const windows = new Map<number, { count: number; readonly endsAt: number }>()
  return (address) => {
    const counter = counterOf(address)
    const now = performance.now()
    let window = windows.get(counter)
    if (window === undefined || window.endsAt <= now) {
      window = { count: 0, endsAt: now + windowSeconds * 1000 }
      windows.set(counter, window)
    }
    window.count += 1
    return {
      limited: window.count > failures,
      justLimited: window.count === failures + 1,
      retryAfterSeconds: Math.ceil((window.endsAt - now) / 1000),
    }
  }
}

function counterOf(address: string): number {
  return createHash('sha256').update(address).digest().readUInt32BE() % COUNTERS
}
