import type { Reach } from '../../outages.js'
import { RetryableError } from '../../platform-errors.js'
import { standingAt, type Wait } from '../../wait.js'

const FIRST_PAUSE_MS = 1_000
/** Long enough to leave a platform alone that is down, short enough to notice soon that it is up again. */
const LONGEST_PAUSE_MS = 15_000

/**
 * Remembers before when no call may be made: of one bucket or, where `bucket` is null, any at all. No pause lasts
 * longer for a clock that is set back.
 */
export interface Pauses {
  /** @throws {RetryableError} while a pause stands; called immediately before every call */
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

/** Whether the call that meets a pause has certainly not been made. */
interface Call {
  readonly isRefused: boolean
}

const MAYBE_DONE: Call = { isRefused: false }

/** @param clock epoch milliseconds */
export function createPauses(clock: () => number, reach?: Reach): Pauses {
  const pauses = new Map<string | null, Pause>()
  let failuresInRow = 0

  function standing(bucket: string | null): Pause | null {
    const begun = pauses.get(bucket)
    if (begun === undefined) return null
    const now = clock()
    const pause = standingAt(begun, now)
    if (now >= pause.until) {
      pauses.delete(bucket)
      return null
    }
    pauses.set(bucket, pause)
    return pause
  }

  /** A pause never becomes shorter. */
  function begin(bucket: string | null, pause: Pause, call: Call = MAYBE_DONE): RetryableError {
    const earlier = standing(bucket)
    const longest = earlier !== null && earlier.until > pause.until ? earlier : pause
    pauses.set(bucket, longest)
    return paused(bucket, longest, call)
  }

  return {
    check(bucket) {
      for (const held of [null, bucket]) {
        const pause = standing(held)
        if (pause) throw paused(held, pause, { isRefused: true })
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
        { isRefused: true },
      ),
    failed(code, message) {
      reach?.failed(message)
      const pause = standing(null)
      // The call was under way when the pause began: the same failure, seen once more.
      if (pause) return paused(null, pause, MAYBE_DONE)
      failuresInRow += 1
      if (failuresInRow === 1) return new RetryableError(code, message)
      const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** (failuresInRow - 2), LONGEST_PAUSE_MS)
      const since = clock()
      return begin(null, { code, message, since, until: since + pauseMs })
    },
    answered() {
      reach?.answered()
      failuresInRow = 0
    },
  }
}

function paused(bucket: string | null, { code, message, until }: Pause, { isRefused }: Call): RetryableError {
  const scope = bucket === null ? 'platform' : 'target'
  return new RetryableError(code, message, { scope, notBefore: until, isRefused })
}
