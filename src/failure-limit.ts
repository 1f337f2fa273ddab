import { createHash } from 'node:crypto'

/** Enough failures for a merchant who tries out a secret by hand. */
const FAILURES_PER_WINDOW = 30
const WINDOW_SECONDS = 60

/** Names share this many counters, which bounds memory; names that share a counter are limited together. */
const COUNTERS = 16_384

/** The count of a name after one more failure. */
export interface FailureCount {
  readonly limited: boolean
  /** True for the one failure that exceeded the limit, so that it is logged once. */
  readonly justLimited: boolean
  readonly retryAfterSeconds: number
}

/** Limits the failures of each name, an address or an account, by default to 30 in 60 seconds. Counts one more. */
export function createFailureLimit({
  failures = FAILURES_PER_WINDOW,
  windowSeconds = WINDOW_SECONDS,
}: {
  failures?: number
  windowSeconds?: number
} = {}): (name: string) => FailureCount {
  const windows = new Map<number, { count: number; readonly endsAt: number }>()
  return (name) => {
    const counter = createHash('sha256').update(name).digest().readUInt32BE() % COUNTERS
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
